package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/lab/slow"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/internal/replica"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// members returns the members that node i lists. The list begins after the given session.
func (f *fleet) members(i int, after string) (list []mortise.Member) {
	f.t.Helper()
	for m, err := range f.nodes[i].Members(brief(f.t), after) {
		if err != nil {
			f.t.Fatalf("node %d: %v", i, err)
		}
		list = append(list, m)
	}
	return list
}

func memberNames(list []mortise.Member) string {
	var names []string
	for _, m := range list {
		names = append(names, fmt.Sprintf("%s/%s", m.Name, m.Tier))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestMembersAreTheLeadersTable checks that every node lists each instance of every tier once, and
// no other sessions.
func TestMembersAreTheLeadersTable(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withFounders, func(c *mortise.Config) { c.Zone = "zone of " + c.Name })
		for i, words := range []string{"", "member"} {
			c := f.config(3+i, 3)
			withFounders(&c)
			c.Zone = "elsewhere"
			if words != "" {
				c.Secret = derived(t, words)
			}
			if err := f.start(3+i, c).Ready(brief(t)); err != nil {
				t.Fatal(err)
			}
		}
		v := f.visit(derived(t, "lock k"))
		v.bind(replica.Record{Name: "cron", Guest: true})
		if err := v.lock("k"); err != nil {
			t.Fatal(err)
		}
		own := f.session(0, time.Second)
		stays := f.acquire(4, mortise.Request{Key: "stays", LockDelay: time.Hour})
		if err := stays.Detach(t.Context()); err != nil {
			t.Fatal(err)
		}
		const want = "cron/guest node-0/root node-1/root node-2/root node-3/root node-4/member"
		for i := range f.nodes {
			if i == 4 {
				continue // this node has only the rights of its secret
			}
			list := f.members(i, "")
			if got := memberNames(list); got != want {
				t.Errorf("node %d lists %s, want %s", i, got, want)
			}
			for _, m := range list {
				root := m.Tier == mortise.TierRoot
				if (m.For == "") != root || (m.Address != "") != root ||
					m.Votes != slices.Contains([]string{"node-0", "node-1", "node-2"}, m.Name) {
					t.Errorf("%+v", m)
				}
				if node := strings.HasPrefix(m.Name, "node"); node && time.Since(m.Since) > time.Minute {
					t.Errorf("%s is a member since %v", m.Name, m.Since)
				}
				if root && m.Version != mortise.Version() {
					t.Errorf("%s has version %q", m.Name, m.Version)
				}
				if m.Name == "node-3" && (m.Instance != f.nodes[3].Status().Instance || m.Zone != "elsewhere") {
					t.Errorf("%+v", m)
				}
			}
			if behind := f.members(i, list[2].Session); !slices.Equal(behind, list[3:]) {
				t.Errorf("behind the third: %+v, want %+v", behind, list[3:])
			}
			time.Sleep(7 * time.Second)
			s := f.nodes[i].Status()
			if h, err := f.nodes[i].Health(brief(t)); err != nil || h.Members != 6 {
				t.Errorf("node %d counts %d members, %v", i, h.Members, err)
			}
			for _, voter := range s.Voters {
				if voter.Name == "" || voter.Zone != "zone of "+voter.Name || !voter.Seen && i < 3 {
					t.Errorf("node %d: %+v", i, voter)
				}
			}
		}
		if err := own.Close(brief(t)); err != nil {
			t.Error(err)
		}
	})
}

func TestMembersTakeTheRightToReadAll(t *testing.T) {
	slow.UnderRace(t)
	for rights, want := range map[string]bool{"read a": false, "lock *": false, "read *": true} {
		bubble(t, func(t *testing.T) {
			f := startFleet(t, 3, withFounders)
			_, failed := asks(t, f.visit(derived(t, rights)).admin(1), query.AdminClient.Members, &query.PageRequest{})
			if want != (failed == nil) || !want && failed.Kind != query.Failure_DENIED {
				t.Errorf("%s: %v", rights, failed)
			}
		})
	}
}

func TestMembersWithoutALeader(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		f.members(0, "")
		f.crash(1)
		f.crash(2)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for m, err := range f.nodes[0].Members(ctx, "") {
			if !errors.Is(err, context.DeadlineExceeded) || m != (mortise.Member{}) {
				t.Errorf("%+v, %v", m, err)
			}
		}
		if s := f.nodes[0].Status(); s.Leader != "" || s.Voters[0].Name == "" {
			t.Errorf("%+v", s)
		}
		for _, err := range f.nodes[0].Members(ctx, "yesterday") {
			if !errors.Is(err, mortise.ErrBadRequest) {
				t.Errorf("%v", err)
			}
		}
	})
}

// TestThePictureIsBounded checks that an instance keeps one page of members and the names of a few
// voters, however large the fleet is.
func TestThePictureIsBounded(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3)
		var sessions []*mortise.Session
		for i := range 3 * replica.MaxPage {
			sessions = append(sessions, f.session(i%3, 2*time.Second))
		}
		time.Sleep(time.Second) // the leader has indexed the members
		conn, err := f.nodes[f.leader()].Leader()
		if err != nil {
			t.Fatal(err)
		}
		page, err := queries.Ask(brief(t), query.NewQueryClient(conn), query.QueryClient.Members, &query.PageRequest{})
		if err != nil || len(page.Members) != 3 || !page.More || page.Total != 3 {
			t.Errorf("a page has %d members of %d, more is %t: %v", len(page.Members), page.Total, page.More, err)
		}
		if list := f.members(1, ""); len(list) != 3 {
			t.Errorf("%d members, want 3", len(list))
		}
		if all, err := f.nodes[1].Sessions(brief(t)); err != nil || len(all) != 3*replica.MaxPage+3 {
			t.Errorf("%d sessions, %v", len(all), err)
		}
		for _, s := range sessions {
			if err := s.Close(brief(t)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestNamesAreLearnedWithoutGossip checks that an instance without gossip asks for names once,
// after a delay, and does not ask again while nothing changes.
func TestNamesAreLearnedWithoutGossip(t *testing.T) {
	slow.UnderRace(t)
	bubble(t, func(t *testing.T) {
		f := startFleet(t, 3, withFounders)
		c := f.config(3, 3)
		withFounders(&c)
		c.Secret = derived(t, "member")
		m := f.start(3, c)
		if err := m.Ready(brief(t)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		s := m.Status()
		if s.Leader != f.nodes[f.leader()].Status().Name {
			t.Errorf("its leader is called %s, want %s", s.Leader, f.nodes[f.leader()].Status().Name)
		}
		for _, v := range s.Voters {
			if !strings.HasPrefix(v.Name, "node-") {
				t.Errorf("%+v", v)
			}
		}
		f.close(f.leader())
		time.Sleep(10 * time.Second)
		if s := m.Status(); !strings.HasPrefix(s.Leader, "node-") {
			t.Errorf("the next leader is called %s", s.Leader)
		}
		if m.Learning() {
			t.Error("it asks again, although it knows the names")
		}
	})
}
