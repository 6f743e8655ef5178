package console

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-lock/mortise"
)

type outage struct{ *fakeNode }

func (o outage) Status() mortise.Status {
	voter := func(i int, seen bool) mortise.Member {
		m := fakeMember(i)
		m.Votes, m.Seen = true, seen
		return m
	}
	return mortise.Status{
		Member: mortise.Member{Name: "pod-000", Instance: "instance0"}, Group: "g", Attached: false, Lease: mortise.LeaseLost,
		Voters: []mortise.Member{voter(0, false), voter(1, false), voter(2, true)},
	}
}

func TestAThousandMembersAreShownPageByPage(t *testing.T) {
	f := &fakeNode{fleet: 1000}
	h := New(f, Options{})
	seen := map[string]int{}
	pages, query := 0, ""
	for {
		p := status(t, h, query)
		for _, z := range p.Zones {
			for _, m := range z.Members {
				seen[m.Name]++
			}
		}
		if p.Members.Shown > maxMembers || p.Members.Total != 1000 || p.Members.Old {
			t.Errorf("page %d: %+v", pages, p.Members)
		}
		if pages++; p.Members.Next == "" || pages > 20 {
			break
		}
		query = "?after=" + p.Members.Next
	}
	if len(seen) != 1000 || pages != 11 {
		t.Errorf("%d pages with %d members, want 1,000 in 10 and an empty one", pages, len(seen))
	}
	for name, n := range seen {
		if n != 1 {
			t.Errorf("%s is shown %d times", name, n)
		}
	}
	page := mustPage(t, h, "/")
	wantText(t, page, "100 members on this page, about 1000 in all", `<a href="?after=100">Next page</a>`, "pod-099")
	if strings.Contains(page, "pod-100") || len(page) > 100<<10 {
		t.Errorf("the page has %d bytes and more members than a page", len(page))
	}
	wantText(t, mustPage(t, h, "/?after=100"), `<a href="?">First page</a>`, "pod-100", `<a href="?after=200">`)
	for _, odd := range []string{"x", "-1", "%3Cscript%3E", strings.Repeat("9", 40)} {
		if p := status(t, h, "?after="+odd); p.Members.After != "" || p.Members.Shown != maxMembers {
			t.Errorf("?after=%s: %+v", odd, p.Members)
		}
	}
}

// Without a leader the page shows the voters, marks voters that gossip does not report as alive,
// and shows the last list of the members with its age.
func TestMembersAreOldWithoutALeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for what, c := range map[string]struct {
			age   time.Duration // of the answer that was shown before
			query string
			shown int
			text  string
		}{
			"seen before":  {90 * time.Second, "", 100, "the members are as they were seen 1 min 30 s ago"},
			"another page": {90 * time.Second, "?after=100", 100, "the members are as they were seen 1 min 30 s ago"},
			"never":        {0, "", 0, "the members were not seen before: only the voters are shown"},
		} {
			f := &fakeNode{fleet: 1000}
			h := New(outage{f}, Options{})
			if c.age > 0 {
				status(t, h, "")
				time.Sleep(c.age)
			}
			f.silent.Store(true)
			p := status(t, h, c.query)
			if !p.Members.Old || p.Members.Age < c.age.Seconds() || p.Members.Age > c.age.Seconds()+1 ||
				p.Members.Shown != c.shown || p.Members.Next != "" {
				t.Errorf("%s: %+v", what, p.Members)
			}
			if p.missing("pod-000") || !p.missing("pod-001") || p.missing("pod-002") {
				t.Errorf("%s: %+v", what, p.Zones)
			}
			wantText(t, mustPage(t, h, "/"+c.query), c.text, "pod-001", "not seen")
			if _, next, ok := p.found("no-leader"); !ok || !strings.Contains(next, "pod-001 at 10.0.0.1:7947") ||
				strings.Contains(next, "pod-002") {
				t.Errorf("%s: the next step is %q", what, next)
			}
		}
	})
}

func TestRolesAndZones(t *testing.T) {
	guest := mortise.Member{Name: "<b>cron", Instance: "i9", For: "cron-host", Tier: mortise.TierGuest, Session: "9",
		Zone: "z"}
	derived := mortise.Member{Name: "a-member", Instance: "i8", For: "x", Tier: mortise.TierMember, Session: "8",
		Zone: "z"}
	voter := mortise.Member{Name: "voter", Instance: "i1", Votes: true, Zone: "z", Seen: true}
	zones := zonesOf(mortise.Status{Leader: "voter", Voters: []mortise.Member{voter}}, &mortise.Health{},
		[]mortise.Member{guest, derived, voter})
	var got []string
	for _, m := range zones[0].Members {
		got = append(got, fmt.Sprint(m.Role, " ", m.Name, " ", m.For))
	}
	if len(zones) != 1 || strings.Join(got, ", ") != "leader voter , member a-member x, guest <b>cron cron-host" {
		t.Errorf("%q", got)
	}
}
