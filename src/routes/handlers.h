/*
 * handlers.h - the handlers, as routes.c names them.
 */
#ifndef ROUTES_HANDLERS_H
#define ROUTES_HANDLERS_H

#include "http/request.h"

/* api_sessions.c */
void upstream_pass(struct request *r);
void own_session_create(struct request *r);
void own_session_list(struct request *r);
void own_session_get(struct request *r);
void own_session_patch(struct request *r);
void own_session_delete(struct request *r);
void own_session_restore(struct request *r);
void own_messages_get(struct request *r);
void own_messages_post(struct request *r);

/* mcp/ */
void mcphttp_post(struct request *r);

/* api_context.c */
void own_context_list(struct request *r);
void own_context_read(struct request *r);
void own_context_tail(struct request *r);
void own_context_grep(struct request *r);
void own_context_json(struct request *r);
void own_context_raw(struct request *r);

/* api_runs.c */
void own_run_get(struct request *r);
void own_run_events(struct request *r);
void own_run_stop(struct request *r);
void own_run_approve(struct request *r);

/* own_export.c */
void own_session_export(struct request *r);
void own_import(struct request *r);
void own_project_get(struct request *r);
void own_project_patch(struct request *r);
void own_search(struct request *r);

/* own_story.c, own_home.c, own_trash.c */
void own_session_timeline(struct request *r);
void own_session_errors(struct request *r);
void own_home(struct request *r);
void own_trash_list(struct request *r);
void own_trash_remove(struct request *r);
void own_session_purge(struct request *r);

/* own_watch.c */
void own_watch(struct request *r);
void own_watch_change(struct request *r);
void own_watch_end(struct request *r);
void own_approvals(struct request *r);

/* own_fork.c */
void own_session_fork(struct request *r);
void own_session_seal(struct request *r);

/* own_chatbot.c */
void own_chatbot(struct request *r);
void own_chatbot_public(struct request *r);
void own_session_continue(struct request *r);

/* vercel/, agui/ */
void vercel_chat(struct request *r);
void vercel_messages(struct request *r);
void vercel_stream(struct request *r);
void agui_run(struct request *r);

/* otel/ */
void traces_take(struct request *r);

/* api_misc.c */
void own_stats(struct request *r);
void own_metrics(struct request *r);
void own_health(struct request *r);
void own_docs(struct request *r);

/* openai_conversations.c */
void answers_create(struct request *r);
void answers_get(struct request *r);
void answers_delete(struct request *r);
void answers_cancel(struct request *r);
void answers_inputs(struct request *r);

void conversations_create(struct request *r);
void conversations_get(struct request *r);
void conversations_update(struct request *r);
void conversations_delete(struct request *r);
void conversations_items_list(struct request *r);
void conversations_items_create(struct request *r);
void conversations_item_get(struct request *r);
void conversations_item_delete(struct request *r);

/* acontext.c, acontext_sessions.c, acontext_messages.c */
void acontext_ping(struct request *r);
void acontext_session_create(struct request *r);
void acontext_session_list(struct request *r);
void acontext_session_delete(struct request *r);
void acontext_session_copy(struct request *r);
void acontext_configs_get(struct request *r);
void acontext_configs_put(struct request *r);
void acontext_configs_patch(struct request *r);
void acontext_message_store(struct request *r);
void acontext_messages_get(struct request *r);
void acontext_message_meta(struct request *r);
void acontext_token_counts(struct request *r);
void acontext_observing(struct request *r);
void acontext_flush(struct request *r);
void acontext_tasks(struct request *r);
void acontext_learning(struct request *r);
void acontext_connect(struct request *r);
void acontext_event_add(struct request *r);
void acontext_event_list(struct request *r);
void acontext_disk_create(struct request *r);
void acontext_disk_list(struct request *r);
void acontext_disk_delete(struct request *r);
void acontext_artifact_upsert(struct request *r);
void acontext_artifact_get(struct request *r);
void acontext_artifact_update(struct request *r);
void acontext_artifact_delete(struct request *r);
void acontext_artifact_ls(struct request *r);
void acontext_artifact_glob(struct request *r);
void acontext_artifact_grep(struct request *r);
void acontext_artifact_download(struct request *r);
void acontext_artifact_signed(struct request *r);
void acontext_unsupported(struct request *r);
void acontext_asset_signed(struct request *r);
void acontext_asset_download(struct request *r);

#endif
