package mortise

import (
	"encoding/json"

	"github.com/mortise-lock/mortise/lockfsm"
	"github.com/mortise-lock/mortise/session/client"
)

// This file is how the mark of Hooks.Mark travels with a lock: beside the value and the labels of its request, see showing, unseen by users.

// markBytes is the most of a mark.
const markBytes = 64

// marked adds the mark to what the session room is asked for. One that is too long, or for which there is no room, is left out: a link of a trace
// is no reason to refuse a lock. So is that of a Resume that leaves the hold its value.
func marked(mark []byte, r *Request, s client.Request) client.Request {
	if len(mark) == 0 || len(mark) > markBytes || r.Resume != 0 && r.Value == "" && len(r.Labels) == 0 {
		return s
	}
	b, err := json.Marshal(shown{Value: []byte(r.Value), Labels: r.Labels, Mark: mark})
	if err != nil || 1+len(b) > lockfsm.MaxValueBytes {
		return s
	}
	if s.Terms == nil {
		s.Terms = &client.Terms{} // those of a mutex
	}
	s.Terms.Value = append([]byte{labelMark}, b...)
	return s
}

// markOf returns the mark that travels with what a holder shows, or nil.
func markOf(b []byte) []byte {
	var s shown
	if len(b) == 0 || b[0] != labelMark || json.Unmarshal(b[1:], &s) != nil {
		return nil
	}
	return s.Mark
}
