package election

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-lock/mortise"
)

// noting is a node that notes what it is asked, and fails.
type noting struct{ asked []any }

var errNode = errors.New("of the node")

func (n *noting) Acquire(_ context.Context, r mortise.Request) (*mortise.Lock, error) {
	n.asked = append(n.asked, r)
	return nil, errNode
}

func (n *noting) Peek(_ context.Context, key string) (mortise.KeyInfo, error) {
	n.asked = append(n.asked, "peek "+key)
	return mortise.KeyInfo{Queue: []mortise.Standing{{Hold: mortise.Hold{Token: 7}}}}, errNode
}

func (n *noting) Watch(_ context.Context, prefix string, after uint64) iter.Seq2[mortise.Event, error] {
	n.asked = append(n.asked, fmt.Sprint("watch ", prefix, " ", after))
	return func(yield func(mortise.Event, error) bool) { yield(mortise.Event{}, errNode) }
}

// TestWhatANodeIsAsked compares every request with all its fields, and what its error becomes.
func TestWhatANodeIsAsked(t *testing.T) {
	n := &noting{}
	e := New(n, "billing", Options{Backoff: time.Second, MaxBackoff: 2 * time.Second, JeopardyGrace: 3 * time.Second,
		MaxIdle: 4 * time.Second})
	if l, err := e.Campaign(t.Context(), "10.0.0.7"); l != nil || err != errNode {
		t.Errorf("Campaign returns %v, %v", l, err)
	}
	if err := e.Run(t.Context(), "10.0.0.8", nil); err != errNode {
		t.Errorf("Run returns %v", err)
	}
	if leader, err := e.Leader(t.Context()); leader != (Leader{}) || err != errNode {
		t.Errorf("Leader returns %+v, %v", leader, err)
	}
	for leader, err := range e.Observe(t.Context()) {
		if leader != (Leader{}) || err != errNode {
			t.Errorf("Observe yields %+v, %v", leader, err)
		}
	}
	request := func(value string) mortise.Request {
		return mortise.Request{Key: "billing", Value: value, JeopardyGrace: 3 * time.Second, MaxIdle: 4 * time.Second,
			Labels: map[string]string{"mortise.purpose": "election"}}
	}
	if want := []any{request("10.0.0.7"), request("10.0.0.8"), "peek billing", "watch billing 0"}; !reflect.DeepEqual(
		n.asked, want) {
		t.Errorf("the node was asked\n%+v, want\n%+v", n.asked, want)
	}
}

// TestTheOptionsOfRun compares each option that Run passes on, and each default.
func TestTheOptionsOfRun(t *testing.T) {
	told := 0
	given := Options{Backoff: 2, MaxBackoff: 3, JeopardyGrace: 4, Report: func(mortise.Token, error) { told++ }}
	o := given.run()
	if o.Report(0, nil); o.Backoff != 2 || o.MaxBackoff != 3 || told != 1 {
		t.Errorf("%+v, and Report was called %d times", o, told)
	}
	o = Options{JeopardyGrace: 4}.run()
	if o.Report(0, nil); o.Backoff != time.Second || o.MaxBackoff != time.Minute {
		t.Errorf("by default %+v", o)
	}
}

// TestALeaderHasAllItsFields compares all fields, and each queue without a leader.
func TestALeaderHasAllItsFields(t *testing.T) {
	since := time.Unix(1, 2)
	first := mortise.Standing{Hold: mortise.Hold{Holder: "node", Value: "v", Token: 5, Since: since}}
	for name, row := range map[string]struct {
		queue []mortise.Standing
		want  Leader
	}{
		"none":   {nil, Leader{}},
		"waits":  {[]mortise.Standing{{Hold: mortise.Hold{Holder: "node"}}, first}, Leader{}},
		"leader": {[]mortise.Standing{first, {}}, Leader{Name: "node", Value: "v", Token: 5, Since: since}},
	} {
		e := &Election{peek: func(context.Context, string) (mortise.KeyInfo, error) {
			return mortise.KeyInfo{Queue: row.queue}, nil
		}}
		if leader, err := e.Leader(t.Context()); err != nil || leader != row.want {
			t.Errorf("%s: %+v, %v, want %+v", name, leader, err, row.want)
		}
	}
	s := observation{name: "e"}
	if !s.news(&mortise.Event{Kind: mortise.EventHeld, Part: mortise.Part{Key: "e"}, At: since,
		Hold: mortise.Hold{Holder: "node", Value: "v", Token: 5, Since: time.Unix(3, 4)}}) ||
		s.now != (Leader{Name: "node", Value: "v", Token: 5, Since: since}) {
		t.Errorf("observed %+v", s.now)
	}
}

// released is a grant that notes how it is unlocked.
type released struct {
	grant
	token   mortise.Token
	unlocks int
}

func (r *released) Token() mortise.Token { return r.token }
func (r *released) Unlock(context.Context) error {
	r.unlocks++
	return nil
}
func (r *released) Context(parent context.Context) context.Context { return parent }

// TestACampaignUnderALeadership begins a campaign under each list of leaderships, for each answer
// of the node. What would enter one of them again fails with ErrLeading, and only its handle is
// released.
func TestACampaignUnderALeadership(t *testing.T) {
	entered := fmt.Errorf("wrapped: %w", &mortise.EnteredError{Field: "Value"})
	type outer struct {
		name  string
		token mortise.Token
	}
	for _, row := range []struct {
		under   []outer
		err     error
		want    error
		unlocks int
	}{
		{nil, nil, nil, 0},
		{nil, errNode, errNode, 0},
		{nil, entered, entered, 0},
		{[]outer{{"other", 4}}, nil, nil, 0},
		{[]outer{{"other", 4}}, entered, entered, 0},
		{[]outer{{"e", 4}}, errNode, errNode, 0},
		{[]outer{{"e", 4}}, entered, ErrLeading, 0},
		{[]outer{{"e", 4}, {"other", 6}}, entered, ErrLeading, 0},
		{[]outer{{"other", 6}, {"e", 4}}, entered, ErrLeading, 0},
		{[]outer{{"e", 5}}, nil, ErrLeading, 1},
		{[]outer{{"e", 5}, {"other", 6}}, nil, ErrLeading, 1},
		{[]outer{{"other", 6}, {"e", 5}}, nil, ErrLeading, 1},
		{[]outer{{"e", 4}}, nil, nil, 0}, // that leadership was lost
	} {
		ctx := t.Context()
		for _, o := range row.under {
			ctx = (&Leadership{grant: &released{token: o.token}, name: o.name}).Context(ctx)
		}
		g := &released{token: 5}
		e := &Election{name: "e", acquire: func(context.Context, mortise.Request) (grant, error) {
			if row.err != nil {
				return nil, row.err
			}
			return g, nil
		}}
		l, err := e.Campaign(ctx, "v")
		if err != row.want || g.unlocks != row.unlocks || (l != nil) != (row.want == nil) {
			t.Errorf("under %v the node answers %v: %v, %v, unlocked %d times; want %v, %d times", row.under, row.err, l,
				err, g.unlocks, row.want, row.unlocks)
		}
		if l != nil && (l.Token() != 5 || !stands(l.Context(t.Context()), 5) || !leads(l.Context(t.Context()), "e")) {
			t.Errorf("under %v: the context of the leadership does not know it", row.under)
		}
	}
}
