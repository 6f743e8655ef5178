package client

import "context"

// An upgrade is a request of its own, made under an upgradable hold. It waits, is granted and ends
// like every request. In addition, it ends at the latest together with its hold, in the same output
// of the core and before it.

// UpgradeRequest returns the request for an upgrade of h, an upgradable hold.
func (h *Hold) UpgradeRequest() Request {
	t := h.req.Terms
	return Request{Key: h.req.Key, Terms: &Terms{Under: h.req, Upgrades: true, Notice: t.Notice, Grace: t.Grace,
		Longest: t.Longest}}
}

// MadeUnder sets the innermost lock under which r, an UpgradeRequest, is made. Nil means none but
// its hold. The request must be of the same core.
func (r *Request) MadeUnder(inner *Request) {
	if inner != r.Terms.Under {
		r.Terms.Inner = inner
	}
}

// Upgrade waits until h is the only hold of its lock. Then up is an exclusive hold with its own
// token. The client owns up and r, which must be an UpgradeRequest of h. After an error, h is as
// before, and up must not be used. The errors are those of [Client.Acquire], ErrUpgraded,
// ErrNotHeld if h has ended, and ErrInJeopardy.
func (h *Hold) Upgrade(ctx context.Context, up *Hold, r *Request) error {
	return h.client.AcquireInto(ctx, up, r)
}

// Upgraded reports whether the hold is the upgrade of another hold.
func (h *Hold) Upgraded() bool { return h.req != nil && h.req.upgrades() }
