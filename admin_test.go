package mortise

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/capability"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

// asGuest returns a client of the admin service of n under a derived secret with one right.
func asGuest(t testing.TB, n *Node) (query.AdminClient, *way) {
	t.Helper()
	rights, err := capability.Build("g", time.Time{}, "lock a")
	if err != nil {
		t.Fatal(err)
	}
	kept := &way{}
	services := transport.Services{
		List:      []transport.Service{{Desc: &query.Admin_ServiceDesc, Impl: admin{n: n, way: kept}}},
		Intercept: (&queries.Guard{Started: func() bool { return true }}).Intercept,
	}
	return query.NewAdminClient(services.As(transport.Identity{
		Peer: capability.Peer{Tier: capability.Guest, Capability: rights}})), kept
}

// TestAStatusIsNotMadeForEachGuest checks that a program without the right to read all makes the
// instance build and encode at most one status for each interval.
func TestAStatusIsNotMadeForEachGuest(t *testing.T) {
	n := alone(t, Config{})
	guest, kept := asGuest(t, n)
	ask := func() (s Status) {
		t.Helper()
		a, err := guest.Here(t.Context(), &query.HereRequest{})
		if err == nil {
			err = json.Unmarshal(a.Status, &s)
		}
		if err != nil || a.Denied == nil {
			t.Fatal(a, err)
		}
		return s
	}
	if s := ask(); s.Instance != n.Status().Instance || s.Session != "" {
		t.Errorf("a guest sees %+v", s)
	}
	kept.made = time.Now().Add(time.Hour) // no question is a whole interval later
	var err error
	if kept.text, err = json.Marshal(Status{Member: Member{Name: "kept"}}); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if s := ask(); s.Name != "kept" {
			t.Fatalf("a status was made anew: %+v", s)
		}
	}
	kept.made = time.Now().Add(-wayKept)
	if s := ask(); s.Instance != n.Status().Instance {
		t.Errorf("a guest sees an old status: %+v", s)
	}
}

func BenchmarkHereOfAGuest(b *testing.B) {
	n, err := Start(b.Context(), Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer n.Close()
	guest, kept := asGuest(b, n)
	for name, fresh := range map[string]bool{"kept": false, "made": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if fresh {
					kept.text = nil
				}
				if _, err := guest.Here(b.Context(), &query.HereRequest{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
