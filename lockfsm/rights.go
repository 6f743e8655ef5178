package lockfsm

import "github.com/mortise-lock/mortise/internal/capability"

// A session has the rights of the capability under which it was opened. The machine checks them on
// every key that a command touches, because only the machine knows the keys of a hold. The keys of
// an Acquire need lock. A resumption needs lock on each key of the hold. If the session of the hold
// is not gone, it also needs read and force on each key, unless the same instance has opened both
// sessions, or both have the same capability: so a program with a derived secret that was restarted
// takes its own holds over. An Evict needs read and force on each key of the hold, of its sender.

// sharedRights is one capability and the number of sessions that have it.
type sharedRights struct {
	*capability.Capability
	sessions int
}

// rightsTable contains the rights of all sessions by their texts.
type rightsTable map[string]*sharedRights

// share returns the rights of one more session. It returns nil for a full instance.
func (t rightsTable) share(c *capability.Capability) *sharedRights {
	if c == nil {
		return nil
	}
	shared := t[c.Text()]
	if shared == nil {
		shared = &sharedRights{Capability: c}
		t[c.Text()] = shared
	}
	shared.sessions++
	return shared
}

// read is like share for the text of a capability. It returns false if the text is none.
func (t rightsTable) read(text []byte) (shared *sharedRights, ok bool) {
	if len(text) == 0 {
		return nil, true
	}
	if shared = t[string(text)]; shared != nil {
		return t.share(shared.Capability), true
	}
	c, err := capability.Parse(string(text))
	if err != nil {
		return nil, false
	}
	return t.share(c), true
}

// leave removes a session from its rights.
func (t rightsTable) leave(shared *sharedRights) {
	if shared == nil {
		return
	}
	if shared.sessions--; shared.sessions == 0 {
		delete(t, shared.Text())
	}
}

// all returns the capability, or nil for a full instance.
func (r *sharedRights) all() *capability.Capability {
	if r == nil {
		return nil
	}
	return r.Capability
}

func (r *sharedRights) mayLock(key string) bool { return r.all().Allows(capability.Lock, key) }
