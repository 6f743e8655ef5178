package console

import "slices"

// In a small cluster the table of the members is short enough to be read whole. So the page leaves
// out what this table shows too.

const fewMembers = 3

// once says which facts are left out because they stand elsewhere on the page.
type once struct {
	Small    bool // the table has all members, and is short
	Leader   bool // the table marks the leader
	Address  bool // the table has the address of this instance
	Voters   bool // the table has as many voters as are wanted
	Sessions bool // the table has the sessions
	Tops     bool // the list of all keys is not longer than the lists of the first keys
}

func onceOf(zones []zone, r roster, address string, voters, wanted int) (o once) {
	count := 0
	for _, z := range zones {
		count += len(z.Members)
	}
	if o.Small = count <= fewMembers && r.After == "" && r.Next == ""; !o.Small {
		return o
	}
	o.Leader = anyMember(zones, func(m *member) bool { return m.Role == "leader" })
	o.Address = anyMember(zones, func(m *member) bool { return m.Self && m.Address == address })
	o.Voters = wanted == 0 || wanted == voters
	return o
}

func anyMember(zones []zone, is func(*member) bool) bool {
	return slices.ContainsFunc(zones, func(z zone) bool {
		return slices.ContainsFunc(z.Members, func(m member) bool { return is(&m) })
	})
}

// merge moves the sessions into the table of the members, if each belongs to a member of the table
// and is one like all others.
func (o *once) merge(zones []zone, leases []lease, others int) {
	if !o.Small || others > 0 || len(leases) == 0 {
		return
	}
	at := map[string]*lease{}
	for i := range leases {
		l := &leases[i]
		if l.Own || l.Expired || !anyMember(zones, func(m *member) bool { return m.Session == l.Session }) {
			return
		}
		at[l.Session] = l
	}
	o.Sessions = true
	for _, z := range zones {
		for i := range z.Members {
			z.Members[i].Lease = at[z.Members[i].Session]
		}
	}
}
