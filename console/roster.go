package console

import (
	"slices"

	"github.com/mortise-lock/mortise"
)

// roster returns the page of members to show. If the leader has not answered, it returns the
// first page of the last list that this page has shown.
func (s *scene) roster() (roster, []mortise.Member) {
	r, asked := roster{After: s.after, Total: s.all.total}, s.all
	if s.others != nil {
		asked = s.others
	}
	page := asked.members
	if page == nil {
		page, r.After, r.Old = s.all.before, "", true
		if page == nil {
			page = s.all.members
		}
		if page != nil {
			r.Age = inSeconds(s.now.Sub(s.all.seen))
		}
	} else if len(page) == maxMembers {
		r.Next = page[len(page)-1].Session
	}
	r.Shown = len(page)
	return r, page
}

func unseen(s mortise.Status) []mortise.Member {
	seen := func(v mortise.Member) bool { return v.Seen || v.Instance == s.Instance }
	return slices.DeleteFunc(slices.Clone(s.Voters), seen)
}
