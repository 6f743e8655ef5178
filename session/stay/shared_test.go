package stay

import "testing"

// TestSharedStayRules has one short test for each rule of shared stays.
func TestSharedStayRules(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*rig){
		"readers share": func(r *rig) {
			first := r.granted("r")
			second := r.take("r", Passed)
			r.unlock(first)
			third, _ := r.lock("r", true)
			r.unlock(second)
			if r.in("r") != third {
				r.fatal("a Try does not share")
			}
			r.unlock(third)
			r.unlock(r.take("r", Passed))
			r.did()
		},
		"callers that wait are granted together": func(r *rig) {
			for range 3 {
				r.take("r", Waits)
			}
			r.grant("r")
			r.did("acquire r", "granted r", "granted r", "granted r")
		},
		"a recall": func(r *rig) {
			first, second := r.granted("r"), r.take("r", Passed)
			r.recall("r", 7)
			last := r.take("r", Waits)
			if _, answer := r.lock("r", true); answer != Ordinary {
				r.fatal("answer %d to a Try", answer)
			}
			r.unlock(second)
			r.did("wanted r", "wanted r", "in use r 7")
			r.unlock(first)
			r.did("release r", "acquire r")
			r.grant("r")
			r.unlock(last)
			r.did("granted r")
		},
		"no token is left": func(r *rig) {
			r.reserves = 2
			first, second := r.granted("r"), r.take("r", Passed)
			r.take("r", Ordinary)
			r.unlock(second)
			r.take("r", Ordinary)
			r.unlock(first)
			r.did("release r")
		},
		"no tokens": func(r *rig) {
			r.reserves = 0
			first := r.take("r", Waits)
			r.take("r", Waits)
			r.take("r", Waits)
			r.grant("r")
			r.unlock(first)
			r.did("acquire r", "granted r", "referred r", "referred r", "release r")
		},
		"a request under a pass": func(r *rig) {
			first, second := r.granted("r"), r.take("r", Passed)
			r.nested(second)
			r.take("r", Ordinary)
			r.unlock(second)
			r.take("r", Ordinary)
			r.did()
			r.unlock(first)
			r.did("release r")
		},
		"jeopardy": func(r *rig) {
			first := r.granted("r")
			r.tick(r.safe.Sub(r.now))
			second, third := r.take("r", Waits), r.take("r", Waits)
			r.did()
			r.renewed()
			r.did("granted r", "granted r")
			for _, l := range []*Caller{first, second, third} {
				r.unlock(l)
			}
			r.did()
		},
		"the end of a lease": func(r *rig) {
			r.granted("r")
			r.take("r", Passed)
			r.lose("r")
			r.did("lost r", "lost r")
		},
	} {
		t.Run(name, func(t *testing.T) { test(newRig(t, 10)) })
	}
}

// TestKindsOfOneKey makes shared and exclusive calls for one key. A free stay of the other kind is
// given back first, because the group would let the new request wait for it.
func TestKindsOfOneKey(t *testing.T) {
	t.Parallel()
	for _, shared := range []bool{false, true} {
		r := newRig(t, 10)
		first := &Caller{Key: "x", Shared: shared}
		r.s.Lock(r.window(), first)
		r.s.Granted(r.window(), r.s.commands[0].Request, 10, 20)
		r.s.Unlock(r.window(), first)
		r.s.commands, r.s.news = nil, nil
		r.s.Lock(r.window(), &Caller{Key: "x", Shared: !shared})
		if c := r.s.commands; len(c) != 2 || c[0].Kind != Release || c[0].Request.Shared != shared ||
			c[1].Kind != Acquire || c[1].Request.Shared == shared {
			t.Errorf("shared %v: %+v", shared, c)
		}
	}
}
