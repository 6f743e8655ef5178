package guest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/internal/clock"
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
)

const (
	followEvery = 5 * time.Second        // between two questions for the voters while the session is attached
	askEvery    = 250 * time.Millisecond // while it is not
)

// Session takes locks. Make one with Guest.Session, one at a time, and end it with Close.
type Session struct {
	guest  *Guest
	client *client.Client
	cancel context.CancelFunc
	all    sync.WaitGroup

	group  uint64            // owned by the goroutine of follow once that runs
	voters []nodeid.Endpoint // likewise
}

// Session finds the group and begins a guest's session in it. It returns when a group is known,
// which need not have a leader. If ctx ends before, it fails with ErrNotReady and what it has found
// instead.
func (g *Guest) Session(ctx context.Context) (*Session, error) {
	s := &Session{guest: g}
	s.client = client.New(client.Config{
		Clock: clock.Boot(), TTL: g.config.SessionTTL, Send: s.send, Random: random,
	})
	g.sessions.Store(s.client)
	if r, err := g.first(ctx, func(r Report) bool { return groupOf(r) != 0 && r.Status.Leader != "" }); err == nil {
		s.take([]Report{r})
	}
	for s.group == 0 && !s.refresh(ctx) {
		select {
		case <-ctx.Done():
			g.sessions.Store(nil)
			s.client.Close()
			reports, errs := g.Survey(context.WithoutCancel(ctx))
			return nil, fmt.Errorf("%w: no group was found in time: %s", ErrNotReady, found(reports, errs))
		case <-time.After(again):
		}
	}
	following, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	s.all.Go(func() { s.follow(following) })
	return s, nil
}

// found describes in one line what a survey has found.
func found(reports []Report, errs []error) string {
	for _, r := range reports {
		if r.Status != nil {
			return fmt.Sprintf("%s at %s is %s: %s", r.Status.Name, r.Addr, r.Status.Phase, r.Status.Waiting)
		}
		errs = append(errs, r.Err)
	}
	return errors.Join(errs...).Error()
}

// send is the client's way to a voter.
func (s *Session) send(to nodeid.Endpoint, renewals, commands []byte) error {
	return s.guest.port.Send(to, transport.Frame{Renewals: renewals, Commands: commands})
}

// follow keeps the list of voters current, and changes to another group if this one has ended.
func (s *Session) follow(ctx context.Context) {
	for {
		pause := askEvery
		if s.attached() {
			pause = followEvery
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		s.refresh(ctx)
	}
}

func (s *Session) attached() bool { return s.client.Status().Phase == client.Attached }

// refresh asks the voters and the addresses of Join for the current voters. It reports whether a
// group is known.
func (s *Session) refresh(ctx context.Context) bool {
	places, _ := s.guest.Places(ctx)
	for _, v := range s.voters {
		if !slices.ContainsFunc(places, func(p Report) bool { return p.Addr == v.Addr }) {
			places = append(places, Report{Addr: v.Addr})
		}
	}
	s.take(s.guest.visit(ctx, places))
	return s.group != 0
}

// take processes answers. The session stays in its group as long as an instance that answers
// belongs to it, or the session is attached.
func (s *Session) take(reports []Report) {
	voters := map[uint64][]nodeid.Endpoint{}
	var led uint64
	for _, r := range reports {
		group := groupOf(r)
		if group == 0 {
			continue
		}
		for _, t := range targetsOf(r.Status.Voters) {
			if !slices.Contains(voters[group], t) {
				voters[group] = append(voters[group], t)
			}
		}
		if led == 0 && r.Status.Leader != "" {
			led = group
		}
	}
	mine := voters[s.group]
	slices.SortFunc(mine, func(a, b nodeid.Endpoint) int { return nodeid.Compare(a.ID, b.ID) })
	switch {
	case len(mine) > 0:
		if !slices.Equal(mine, s.voters) {
			s.voters = mine
			s.prefer()
			s.client.SetTargets(slices.Clone(mine))
		}
	case s.group != 0 && s.attached():
	case led != 0:
		s.bind(led, voters[led])
	case s.group == 0:
		for group, list := range voters { // any of them: without a leader the choice does not matter yet
			s.bind(group, list)
			return
		}
	}
}

// groupOf returns the group that an instance belongs to for good, or 0.
func groupOf(r Report) uint64 {
	if r.Status == nil || r.Status.Phase != mortise.PhaseMember || r.Answer.Failed != "" {
		return 0
	}
	group, err := strconv.ParseUint(r.Status.Group, 16, 64)
	if err != nil {
		return 0
	}
	return group
}

func targetsOf(voters []mortise.Member) (list []nodeid.Endpoint) {
	for _, v := range voters {
		if id, err := nodeid.Parse(v.Instance); err == nil && !id.IsZero() && v.Address != "" {
			list = append(list, nodeid.Endpoint{ID: id, Addr: v.Address})
		}
	}
	return list
}

// bind begins a session in a group. What was held in another group is lost.
func (s *Session) bind(group uint64, voters []nodeid.Endpoint) {
	s.group, s.voters = group, voters
	s.prefer()
	g := s.guest
	g.port.Identify(transport.Self{Key: g.key, Group: group})
	record, err := json.Marshal(struct { // the fields of the root's record that a guest has
		Name  string `json:"name"`
		Guest bool   `json:"guest"`
		Since int64  `json:"since"`
	}{g.config.Name, true, time.Now().UnixMilli()})
	if err != nil {
		return // does not happen: it always marshals
	}
	s.client.Rebind(record, slices.Clone(voters))
}

// prefer makes the port reserve dials for the voters.
func (s *Session) prefer() {
	addrs := make([]string, 0, len(s.voters))
	for _, v := range s.voters {
		addrs = append(addrs, v.Addr)
	}
	s.guest.port.Prefer(addrs)
}

// Close ends the session and stops. It tells the group if a leader can be reached before ctx ends
// and no lock is held. Otherwise the session expires with what it holds.
func (s *Session) Close(ctx context.Context) error {
	err := s.client.CloseSession(ctx)
	s.cancel()
	s.all.Wait()
	s.guest.sessions.Store(nil)
	s.client.Close()
	return err
}
