package console

import (
	"slices"

	"github.com/mortise-lock/mortise"
)

// roster returns the page of members to show. If the leader has not answered, it returns the
// first page of the last list that this instance has received.
func (s *scene) roster() (roster, []mortise.Member) {
	r, asked := roster{After: s.after, Total: s.status.MembersTotal}, s.all
	if s.others != nil {
		asked = s.others
	}
	page := asked.members
	if page == nil {
		page = s.status.Members[:min(len(s.status.Members), maxMembers)]
		r.After, r.Old, r.Age = "", true, inSeconds(s.status.MembersAge)
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
