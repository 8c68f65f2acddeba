/*
 * loop_mail.c - messages to the run through the store: a stop, or an answer to a question.
 *
 * The program asks a question where it can: on a terminal, or through the clients of a server. If
 * an answer comes through the store, a flag ends that waiting, and this answer counts.
 */
#include "base/error.h"
#include "loop/loop.h"

static void take_mail(void *ctx, const char *approval, bool allow)
{
        struct loop *c = ctx;
        if (!approval) {
                steno_stop_request(c->own_stop);
                return;
        }
        pthread_mutex_lock(&c->mail.lock);
        /* An approval is of one call, so a late one can only be for a question that is over. */
        if (c->mail.asked && strcmp(c->mail.approval, approval) == 0 &&
            c->mail.answer == STENO_ASK) {
                c->mail.answer = allow ? STENO_ALLOW : STENO_DENY;
                steno_stop_request(c->mail.asked);
        }
        pthread_mutex_unlock(&c->mail.lock);
}

int loop_mail_begin(struct loop *c, struct steno_error *err)
{
        int rc = steno_stop_new_below(c->opt.stop, &c->own_stop, err);
        if (rc)
                return rc;
        pthread_mutex_init(&c->mail.lock, NULL);
        c->opt.stop = c->own_stop;
        steno_run_listen(c->run, take_mail, c);
        return 0;
}

void loop_mail_end(struct loop *c)
{
        if (!c->own_stop)
                return;
        steno_run_listen(c->run, NULL, NULL);
        pthread_mutex_destroy(&c->mail.lock);
        steno_stop_free(c->own_stop);
}

int loop_mail_expect(
    struct loop *c, struct steno_permission_request *request, struct steno_error *err)
{
        struct steno_stop *asked;
        int rc = steno_stop_new_below(c->opt.stop, &asked, err);
        if (rc)
                return rc;
        pthread_mutex_lock(&c->mail.lock);
        c->mail.asked = asked;
        memcpy(c->mail.approval, request->approval, sizeof(c->mail.approval));
        c->mail.answer = STENO_ASK;
        pthread_mutex_unlock(&c->mail.lock);
        request->stop = asked;
        return 0;
}

int loop_mail_answer(struct loop *c)
{
        pthread_mutex_lock(&c->mail.lock);
        int answer = c->mail.answer;
        struct steno_stop *asked = c->mail.asked;
        c->mail.asked = NULL;
        pthread_mutex_unlock(&c->mail.lock);
        steno_stop_free(asked);
        return answer;
}
