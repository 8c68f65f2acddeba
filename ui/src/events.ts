// Written by tools/event-tables from include/steno_events.h: the events that a run can have.
export type EventName =
  | "run_started"
  | "message"
  | "thinking"
  | "message_dropped"
  | "model_retry"
  | "tool_call_start"
  | "tool_call_step"
  | "tool_call_approval"
  | "tool_call_running"
  | "tool_call_complete"
  | "tool_call_error"
  | "final_message"
  | "response_event"
  | "run_error"
  | "run_finished";
