#include "token/refusal.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/banned.h"

static const struct {
	const char *name, *text;
} codes[TOKEN_CODE_COUNT] = {
	/* clang-format off */
	[TOKEN_E_NONE]       = { "E_NONE", "could not be checked" },
	[TOKEN_E_SIZE]       = { "E_SIZE", "larger, longer or more than is accepted" },
	[TOKEN_E_FORMAT]     = { "E_FORMAT", "not in the form of a token" },
	[TOKEN_E_NONCANON]   = { "E_NONCANON", "not in the one form that its content has" },
	[TOKEN_E_TYP]        = { "E_TYP", "signed for something else" },
	[TOKEN_E_ALG]        = { "E_ALG", "signed in another way than Ed25519" },
	[TOKEN_E_SIG]        = { "E_SIG", "the signature does not fit" },
	[TOKEN_E_SCHEMA]     = { "E_SCHEMA", "a claim is missing, unknown or has a value it cannot have" },
	[TOKEN_E_CAP_SYNTAX] = { "E_CAP_SYNTAX", "a capability is not in canonical form" },
	[TOKEN_E_ROOT]       = { "E_ROOT", "nobody who is trusted here issued it" },
	[TOKEN_E_CEILING]    = { "E_CEILING", "the issuer may not give what it gives" },
	[TOKEN_E_LINK_ISS]   = { "E_LINK_ISS", "the holder of the token before did not issue it" },
	[TOKEN_E_LINK_HASH]  = { "E_LINK_HASH", "derived from another token than the one before" },
	[TOKEN_E_DEPTH]      = { "E_DEPTH", "passed on more often than was allowed" },
	[TOKEN_E_TIME]       = { "E_TIME", "not valid now, or for longer than it may be" },
	[TOKEN_E_AUD]        = { "E_AUD", "not for this realm" },
	[TOKEN_E_SUB]        = { "E_SUB", "for another principal or workflow than the token before" },
	[TOKEN_E_WIDEN]      = { "E_WIDEN", "gives more than the token before" },
	[TOKEN_E_REVOKED]    = { "E_REVOKED", "was revoked" },
	[TOKEN_E_RVK_STALE]  = { "E_RVK_STALE", "the newest list of what was revoked is too old" },
	[TOKEN_E_POP]        = { "E_POP", "the proof is not one for this token, here and now" },
	[TOKEN_E_NONCE]      = { "E_NONCE", "the nonce is not one that was given out, or too old" },
	[TOKEN_E_REPLAY]     = { "E_REPLAY", "was used already" },
	[TOKEN_E_ACTH]       = { "E_ACTH", "the proof is for another action" },
	[TOKEN_E_LOG]        = { "E_LOG", "it could not be written down" },
	/* clang-format on */
};

const char *token_code_name(enum token_code code)
{
	return code < TOKEN_CODE_COUNT ? codes[code].name : "E_NONE";
}

const char *token_code_text(enum token_code code)
{
	return code < TOKEN_CODE_COUNT ? codes[code].text : codes[TOKEN_E_NONE].text;
}

int token_refuse(struct token_why *why, enum token_code code, const char *fmt, ...)
{
	va_list ap;

	why->code = code;
	why->err = (struct writ_err){ .code = WRIT_E_DENIED };
	va_start(ap, fmt);
	(void)vsnprintf(why->err.what, sizeof(why->err.what), fmt, ap);
	va_end(ap);
	return WRIT_E_DENIED;
}

int token_nomem(struct token_why *why)
{
	why->code = TOKEN_E_NONE;
	return writ_nomem(&why->err);
}
