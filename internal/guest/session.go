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
	"github.com/mortise-lock/mortise/internal/nodeid"
	"github.com/mortise-lock/mortise/session/client"
	"github.com/mortise-lock/mortise/transport"
)

const (
	followEvery = 5 * time.Second        // pause between questions for the voters while attached to a leader
	askEvery    = 250 * time.Millisecond // pause between questions for the voters while not attached
	stays       = 1000                   // free sticky locks, and how long they stay unused
	stayIdle    = time.Second
)

// Session takes locks. Guest.Session makes one, and Close ends it. A guest can have one Session at
// a time.
type Session struct {
	guest  *Guest
	client *client.Client
	cancel context.CancelFunc
	all    sync.WaitGroup

	group  uint64            // owned by the goroutine of follow while that goroutine runs
	voters []nodeid.Endpoint // owned like group
}

// Session finds the group and begins a guest's session in it. It returns as soon as a group is
// found, even if the group has no leader. If ctx ends earlier, it fails with ErrNotReady, and the
// error describes the instances that were found.
func (g *Guest) Session(ctx context.Context) (*Session, error) {
	s := &Session{guest: g}
	s.client = client.New(client.Config{
		Clock: g.world.Clock, TTL: g.config.SessionTTL, Send: s.send, Random: g.world.Random,
		Stays: stays, StayIdle: stayIdle,
	})
	g.sessions.Store(s.client)
	if r, err := g.first(ctx, func(r Report) bool { return groupOf(r) != 0 && r.Status.Leader != "" }); err == nil {
		s.learn([]Report{r})
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

func found(reports []Report, errs []error) string {
	for _, r := range reports {
		if r.Status != nil {
			return fmt.Sprintf("%s at %s is no member of a group yet: %s", r.Status.Name, r.Addr, r.Status.Waiting)
		}
		errs = append(errs, r.Err)
	}
	return errors.Join(errs...).Error()
}

func (s *Session) send(to nodeid.Endpoint, renewals, commands []byte) error {
	return s.guest.port.Send(to, transport.Frame{Renewals: renewals, Commands: commands})
}

// follow keeps the list of voters current, and switches to another group if the session's group has
// ended.
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

func (s *Session) refresh(ctx context.Context) bool {
	places, _ := s.guest.Places(ctx)
	for _, v := range s.voters {
		if !slices.ContainsFunc(places, func(p Report) bool { return p.Addr == v.Addr }) {
			places = append(places, Report{Addr: v.Addr})
		}
	}
	s.learn(s.guest.visit(ctx, places))
	return s.group != 0
}

// learn processes the reports. The session stays in its group while it is attached to a leader, or
// while an instance that has answered belongs to the group.
func (s *Session) learn(reports []Report) {
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
		for group, list := range voters { // any group, because no group has a leader
			s.bind(group, list)
			return
		}
	}
}

func groupOf(r Report) uint64 {
	if r.Status == nil || !r.Status.Joined || r.Answer.Failed != "" {
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

// bind begins a session in a group. Locks that were held in another group are lost.
func (s *Session) bind(group uint64, voters []nodeid.Endpoint) {
	s.group, s.voters = group, voters
	s.prefer()
	g := s.guest
	g.port.Identify(transport.Self{Key: g.key, Group: group})
	record, err := json.Marshal(struct { // the record of a guest has only these fields
		Name  string `json:"name"`
		Guest bool   `json:"guest"`
		Since int64  `json:"since"`
	}{g.config.Name, true, time.Now().UnixMilli()})
	if err != nil {
		return // cannot happen, because the record can always be encoded
	}
	s.client.Rebind(record, slices.Clone(voters))
}

func (s *Session) prefer() {
	addrs := make([]string, 0, len(s.voters))
	for _, v := range s.voters {
		addrs = append(addrs, v.Addr)
	}
	s.guest.port.Prefer(addrs)
}

// Close ends the session. If no lock is held and the leader can be reached before ctx ends, the
// leader ends the session immediately. Otherwise the session and its locks expire.
func (s *Session) Close(ctx context.Context) error {
	err := s.client.CloseSession(ctx)
	s.cancel()
	s.all.Wait()
	s.guest.sessions.Store(nil)
	s.client.Close()
	return err
}
