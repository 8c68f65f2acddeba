/* foreign_kinds.h - the rows of the table in foreign.c. */
#ifndef FOREIGN_FOREIGN_KINDS_H
#define FOREIGN_FOREIGN_KINDS_H

#include "foreign/foreign.h"

extern const struct foreign_kind foreign_codex;
extern const struct foreign_kind foreign_claude;
extern const struct foreign_kind foreign_qwen;
extern const struct foreign_kind foreign_gemini;
extern const struct foreign_kind foreign_gemini_old;
extern const struct foreign_kind foreign_pi;
extern const struct foreign_kind foreign_neovate;
extern const struct foreign_kind foreign_goose;
extern const struct foreign_kind foreign_goose_lines;
extern const struct foreign_kind foreign_opencode;
extern const struct foreign_kind foreign_opencode_export;
extern const struct foreign_kind foreign_opencode_folder;
extern const struct foreign_kind foreign_cline;
extern const struct foreign_kind foreign_roo;
extern const struct foreign_kind foreign_continue;
extern const struct foreign_kind foreign_crewagent;
extern const struct foreign_kind foreign_deepchat;
extern const struct foreign_kind foreign_deepchat_export;
extern const struct foreign_kind foreign_acontext;
extern const struct foreign_kind foreign_sharegpt;
extern const struct foreign_kind foreign_langchain;
extern const struct foreign_kind foreign_list;

#endif
