package console

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/plain"
)

const maxStuck = 3

// lockFindings returns the locks that need attention. It returns none if the data is stale,
// because then a listed hold may already have ended, and no hold can be ended by force.
func (s *scene) lockFindings(v *view) (all []finding) {
	if s.stale() {
		return nil
	}
	all = s.earlierFindings()
	stuck := slices.DeleteFunc(slices.Clone(s.all.keys), func(k mortise.KeyInfo) bool {
		return !s.isLong(k) ||
			s.ofEarlier(k)
	})
	slices.SortStableFunc(stuck, func(a, b mortise.KeyInfo) int { return cmp.Compare(s.heldFor(b), s.heldFor(a)) })
	if len(stuck) > 0 {
		f := finding{
			ID: "held-long", Level: watch, What: fmt.Sprintf("%s held for longer than %s while others wait.",
				number(len(stuck), "key is", "keys are"), span(s.long)),
			Next: "See what the holder does under the lock. If it does not end, stop it, and then end the hold by force.",
		}
		if !slices.ContainsFunc(stuck, func(k mortise.KeyInfo) bool { return !k.Queue[0].Expired }) {
			f.Next = "Stop nothing: the holders are gone. Each lock goes to the next when its lock delay ends, or when " +
				"you end the hold by force."
		}
		for _, k := range stuck[:min(len(stuck), maxStuck)] {
			f.About = append(f.About, about{k.Key, s.stuck(k)})
		}
		if rest := len(stuck) - maxStuck; rest > 0 {
			f.Next += fmt.Sprintf(" %s marked below.", number(rest, "more is", "more are"))
		}
		all = append(all, f)
	}
	for _, c := range v.Circles {
		f := finding{
			ID: "deadlock", Level: watch, What: "This may be a deadlock.",
			Next: "If each of them holds one lock and waits for the next in the same piece of work, none will end: end one " +
				"hold by force. A request under Lock.Context fails instead of closing a circle.",
		}
		for _, l := range c {
			f.ID += "/" + l.Holds
			f.About = append(f.About, about{l.Holds, fmt.Sprintf("is held by %s, which waits for %s", plain.Text(l.Holder),
				clip(plain.Text(l.WaitsFor), briefly))})
		}
		all = append(all, f)
	}
	return all
}

func (s *scene) earlierFindings() []finding {
	f := finding{
		ID: "held-earlier", Level: watch,
		Next: "Wait, and stop nothing: each lock goes to the next when the earlier session ends. " +
			"If it does not end, two processes have this name.",
	}
	for _, k := range s.all.keys {
		if k.Waiting == 0 || !s.ofEarlier(k) {
			continue
		}
		q := k.Queue[0]
		newer, _ := s.later(q)
		f.About = append(f.About, about{k.Key,
			fmt.Sprintf("is held by session %s of %s, which has the newer session %s: "+
				"it is free in %s unless the earlier process still runs",
				q.Session, plain.Text(q.Holder), newer, span(q.Left))})
	}
	if len(f.About) == 0 {
		return nil
	}
	f.What = number(len(f.About), "key is", "keys are") +
		" held by an earlier incarnation of an instance that was restarted."
	f.About = f.About[:min(len(f.About), maxStuck)]
	return []finding{f}
}

// idleFindings returns the locks of this instance whose work has not moved for half of MaxIdle.
func (s *scene) idleFindings(v *view) []finding {
	f := finding{ID: "idle", Level: watch,
		Next: "See where the code under the lock hangs, in a stack dump of this process. If it works, it must call Beat " +
			"more often, or have a longer MaxIdle. At MaxIdle the lock ends by itself."}
	quiet := 0
	for _, h := range v.Instance.Idle {
		if h.Idle <= h.MaxIdle/2 {
			continue
		}
		if quiet++; quiet <= maxStuck {
			f.About = append(f.About, about{h.Key, h.Text()})
		}
	}
	if quiet == 0 {
		return nil
	}
	f.What = number(quiet, "lock", "locks") + " of this instance had no Beat for half of the MaxIdle."
	return []finding{f}
}

func (s *scene) ofEarlier(k mortise.KeyInfo) bool {
	if len(k.Queue) == 0 || k.Queue[0].Token == 0 || k.Queue[0].Expired {
		return false
	}
	_, is := s.later(k.Queue[0])
	return is
}

func (s *scene) stuck(k mortise.KeyInfo) string {
	q := k.Queue[0]
	is := "held"
	if q.Kept {
		is = "kept"
	}
	text := fmt.Sprintf("has been %s by %s for %s; %s", is, plain.Text(q.Holder), span(s.heldFor(k)),
		number(k.Waiting, "waits", "wait"))
	if q.Value != "" {
		text += fmt.Sprintf("; it says “%s”", clip(plain.Text(q.Value), briefly))
	}
	if q.Expired {
		text += fmt.Sprintf("; the holder is gone, and its lock delay ends in %s", span(q.Left))
	}
	return text
}
