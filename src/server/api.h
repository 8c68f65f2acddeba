/*
 * api.h - the handlers, as routes.c names them.
 */
#ifndef SERVER_API_H
#define SERVER_API_H

#include "server/request.h"

/* api_sessions.c */
void api_session_create(struct request *r);
void api_session_list(struct request *r);
void api_session_get(struct request *r);
void api_session_patch(struct request *r);
void api_session_delete(struct request *r);
void api_session_restore(struct request *r);
void api_messages_get(struct request *r);
void api_messages_post(struct request *r);

/* api_context.c */
void api_context_list(struct request *r);
void api_context_read(struct request *r);
void api_context_tail(struct request *r);
void api_context_grep(struct request *r);
void api_context_raw(struct request *r);

/* api_runs.c */
void api_run_get(struct request *r);
void api_run_events(struct request *r);
void api_run_stop(struct request *r);
void api_run_approve(struct request *r);

/* api_chatbot.c */
void api_chatbot(struct request *r);
void api_chatbot_public(struct request *r);
void api_session_continue(struct request *r);

/* api_misc.c */
void api_stats(struct request *r);
void api_metrics(struct request *r);
void api_health(struct request *r);
void api_docs(struct request *r);

/* openai_conversations.c */
void openai_conversation_create(struct request *r);
void openai_conversation_get(struct request *r);
void openai_conversation_update(struct request *r);
void openai_conversation_delete(struct request *r);
void openai_items_list(struct request *r);
void openai_items_create(struct request *r);
void openai_item_get(struct request *r);
void openai_item_delete(struct request *r);

#endif
