/*
 * rules_gemini.c - what Gemini's generateContent accepts.
 *
 * Types: Content of the @google/genai package, without the members that are marked as not supported
 * in the Gemini API. Limits, each as the endpoint says it:
 *   name      "Must start with a letter or an underscore. Must be a-z, A-Z, 0-9, or contain
 *             underscores (_), dots (.), colons (:), or dashes (-)", up to 128
 *   media     "Unsupported MIME type"; the list is that of the file requirements
 */
#include "format/rules.h"

static const struct rules_type types[] = {
    {"message", "parts?:[part role?:=user|=model"},
    {"part", "mediaResolution?:o toolCall?:o toolResponse?:o audioTranscription?:o "
             "codeExecutionResult?:code_result executableCode?:code fileData?:file "
             "functionCall?:call functionResponse?:response inlineData?:blob text?:s thought?:b "
             "thoughtSignature?:s videoMetadata?:o partMetadata?:o mediaProcessing?:s "
             "speechMetadata?:o"},
    {"code", "code:s language:=LANGUAGE_UNSPECIFIED|=PYTHON id?:s"},
    {"code_result", "outcome:=OUTCOME_UNSPECIFIED|=OUTCOME_OK|=OUTCOME_FAILED|"
                    "=OUTCOME_DEADLINE_EXCEEDED output?:s id?:s"},
    {"file", "displayName?:s fileUri:s mimeType:s"},
    {"blob", "data:s displayName?:s mimeType:s"},
    {"call", "args?:o id?:s name?:s"},
    {"response", "id?:s name:s parts?:[response_part response:o scheduling?:s willContinue?:b"},
    {"response_part", "fileData?:file inlineData?:blob mediaProcessing?:s"},
    {NULL, NULL},
};

static const char *const images[] = {
    "image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", NULL};
static const char *const sounds[] = {"audio/wav", "audio/mp3", "audio/mpeg", "audio/aiff",
    "audio/aac", "audio/ogg", "audio/flac", NULL};
static const char *const files[] = {"video/mp4", "video/mpeg", "video/mov", "video/quicktime",
    "video/avi", "video/x-flv", "video/mpg", "video/webm", "video/wmv", "video/3gpp",
    "application/pdf", "text/plain", "text/html", "text/css", "text/csv", "text/xml", "text/md",
    NULL};

const struct rules rules_gemini = {
    .provider = "gemini",
    .types = types,
    .message = "message",
    .reply = " id createdAt exitCode signal timedOut duration toolName entry ",
    .name_also = ".:",
    .name_max = 128,
    .name_letter = true,
    .images = images,
    .files = files,
    .sounds = sounds,
};
