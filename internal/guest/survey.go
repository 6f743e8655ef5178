package guest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mortise-lock/mortise"
	"github.com/mortise-lock/mortise/cluster/discovery"
	"github.com/mortise-lock/mortise/internal/plain"
	"github.com/mortise-lock/mortise/internal/queries"
	"github.com/mortise-lock/mortise/transport"
	"github.com/mortise-lock/mortise/transport/wire/mortise/query/v1"
)

const (
	maxAsks   = 64  // questions at a time
	maxPlaces = 128 // addresses that a survey asks
	maxJoin   = 64  // addresses from Join that a survey asks; voters are always asked
	again     = 100 * time.Millisecond
)

// ErrNotReady means that no instance with a leader has answered. It is the same value as
// mortise.ErrNotReady.
var ErrNotReady = mortise.ErrNotReady

// Outcome is the result of the question to one address.
type Outcome string

// The outcomes of a question.
const (
	Answered     Outcome = "answered"
	Refused      Outcome = "refused" // no process accepts connections at the address
	Silent       Outcome = "silent"  // no answer
	Foreign      Outcome = "foreign" // the two sides have different secrets, or only one has a secret
	OtherVersion Outcome = "version" // no protocol version in common with this program
)

// Report describes what a survey has found at one address.
type Report struct {
	Addr string
	// From is the source of the address: an entry of Join, or the Name of the instance that named
	// the address.
	From    string
	Status  *mortise.Status   // nil if there is no answer
	Answer  *query.HereAnswer // rest of the answer; set if Status is set
	Outcome Outcome
	Err     error // why there is no answer
	Took    time.Duration
	Skew    time.Duration // wall clock there minus wall clock here, accurate to half of Took
}

// Places resolves Join and JoinFunc. It returns the addresses, each with the entry that was
// resolved to it. errs describes the entries that cannot be resolved.
func (g *Guest) Places(ctx context.Context) (places []Report, errs []error) {
	add := func(entry string, addrs []string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s cannot be looked up: %w", entry, err))
		}
		if err == nil && len(addrs) == 0 {
			errs = append(errs, fmt.Errorf("%s resolves to no address", entry))
		}
		for _, a := range addrs {
			if !slices.ContainsFunc(places, func(p Report) bool { return p.Addr == a }) {
				places = append(places, Report{Addr: a, From: entry})
			}
		}
	}
	type looked struct {
		addrs []string
		err   error
	}
	results := make([]looked, len(g.config.Join))
	var all sync.WaitGroup
	for i, entry := range g.config.Join {
		all.Go(func() { results[i].addrs, results[i].err = discovery.Lookup(ctx, entry) })
	}
	all.Wait()
	for i, r := range results {
		add(g.config.Join[i], r.addrs, r.err)
	}
	if g.config.JoinFunc != nil {
		addrs, err := g.config.JoinFunc(ctx)
		add("Config.JoinFunc", addrs, err)
	}
	return places, errs
}

// Survey asks all instances that it can find: first those at the addresses of Join, then the voters
// that the answers name, and then the members on the first page of the leader's list. It needs no
// leader. It asks at most 128 addresses, always including the voters. If it leaves out addresses,
// one of the errors contains their number. ctx limits the survey, and each question takes at most a
// second.
func (g *Guest) Survey(ctx context.Context) (reports []Report, errs []error) {
	places, errs := g.Places(ctx)
	s := survey{todo: places[:min(len(places), maxJoin)], known: map[string]bool{}}
	for _, p := range places {
		s.known[p.Addr] = true
	}
	left, listed := len(places)-len(s.todo), false
	for len(s.todo) > 0 {
		answers := g.visit(ctx, s.todo)
		reports, s.todo = append(reports, answers...), nil
		s.name(answers)
		if len(s.todo) == 0 && !listed {
			listed = true
			s.add("the leader", g.listed(ctx, reports))
		}
		if over := len(reports) + len(s.todo) - maxPlaces; over > 0 {
			left += min(over, len(s.todo))
			s.todo = s.todo[:len(s.todo)-min(over, len(s.todo))]
		}
	}
	if left > 0 {
		errs = append(errs, fmt.Errorf("%d more addresses were not asked: a survey asks at most %d", left, maxPlaces))
	}
	slices.SortStableFunc(reports, func(a, b Report) int { return cmp.Compare(a.name(), b.name()) })
	return reports, errs
}

type survey struct {
	todo  []Report
	known map[string]bool // addresses that were asked, are in todo or were left out
}

func (s *survey) name(answers []Report) {
	for _, r := range answers {
		if r.Status != nil {
			s.add(r.Status.Name, r.Status.Voters)
		}
	}
}

func (s *survey) add(from string, list []mortise.Member) {
	for _, m := range list {
		if m.Address != "" && !s.known[m.Address] {
			s.known[m.Address] = true
			s.todo = append(s.todo, Report{Addr: m.Address, From: from})
		}
	}
}

func (g *Guest) listed(ctx context.Context, reports []Report) (list []mortise.Member) {
	for _, r := range reports {
		if r.Status == nil || r.Status.Leader == "" || !r.Status.Attached ||
			r.Answer.Denied != nil {
			continue
		}
		asking, cancel := context.WithTimeout(ctx, askWithin)
		a, err := Ask(asking, g, r.Addr, query.AdminClient.Members, &query.PageRequest{})
		cancel()
		if err == nil && json.Unmarshal(a.Members, &list) == nil {
			return list
		}
		return nil // the other instances would ask the same leader
	}
	return nil
}

func (r Report) name() string {
	if r.Status == nil {
		return "\xff" + r.Addr
	}
	return r.Status.Name + r.Status.Instance
}

func (g *Guest) visit(ctx context.Context, places []Report) []Report {
	reports := slices.Clone(places)
	free := make(chan struct{}, maxAsks)
	var all sync.WaitGroup
	for i := range reports {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			g.here(ctx, &reports[i])
		})
	}
	all.Wait()
	return reports
}

func (g *Guest) here(ctx context.Context, r *Report) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	asked := time.Now()
	r.Answer, r.Err = Ask(ctx, g, r.Addr, query.AdminClient.Here, &query.HereRequest{})
	r.Took = time.Since(asked)
	if r.Err == nil {
		var s mortise.Status
		if r.Err = json.Unmarshal(r.Answer.Status, &s); r.Err == nil {
			r.Status = &s
		}
	}
	r.Outcome = outcome(r.Err)
	if r.Status != nil {
		r.Skew = time.UnixMilli(r.Answer.WallUnixMs).Sub(asked.Add(r.Took / 2))
	}
}

func outcome(err error) Outcome {
	switch {
	case err == nil:
		return Answered
	case errors.Is(err, transport.ErrRefused):
		return Refused
	case errors.Is(err, transport.ErrVersion):
		return OtherVersion
	case errors.Is(err, transport.ErrForeign):
		return Foreign
	}
	return Silent
}

// Put finds an instance that has a leader and sends it a question, until there is an answer or ctx
// ends. It begins with the instance that has answered last. If a retry cannot succeed, Put returns
// the error immediately. ErrNotReady means that no instance has answered, or that none of them has
// a leader.
func Put[Q, A any](ctx context.Context, g *Guest, method Method[Q, A], q *Q) (*A, error) {
	var last error
	if addr := g.answered.Load(); addr != nil {
		asking, cancel := context.WithTimeout(ctx, queries.Time(q)+answerLate)
		a, err := Ask(asking, g, *addr, method, q)
		if cancel(); settled(err) {
			return a, err
		}
		g.answered.CompareAndSwap(addr, nil)
	}
	for {
		addr, err := g.led(ctx)
		if err == nil {
			var a *A
			if a, err = Ask(ctx, g, addr, method, q); settled(err) {
				g.answered.Store(&addr)
				return a, err
			}
			if errors.Is(err, transport.ErrTooLarge) {
				return nil, fmt.Errorf("%w: %w", mortise.ErrBadRequest, err)
			}
		}
		// Keep an error about a foreign instance. During the pause after a failed dial, later
		// errors only say that the instance is silent.
		known := errors.Is(last, transport.ErrForeign) && !errors.Is(err, transport.ErrForeign)
		if last == nil || ctx.Err() == nil && !known {
			last = err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrNotReady, last)
		case <-time.After(again):
		}
	}
}

// settled reports whether the error of an answer, or nil, is the result of a question.
func settled(err error) bool {
	f := failed(err)
	return err == nil || errors.Is(err, mortise.ErrNotAllowed) || f != nil && f.Kind != query.Failure_NOT_READY
}

// Denied returns nil for a complete answer. If the answer was shortened because a right is missing,
// Denied returns a *mortise.NotAllowedError that names the right.
func Denied(a *query.HereAnswer) error {
	if d := a.GetDenied(); d != nil {
		return notAllowed(d.Verb, string(d.Key), d.For)
	}
	return nil
}

func (g *Guest) led(ctx context.Context) (string, error) {
	r, err := g.first(ctx, knowsLeader)
	return r.Addr, err
}

// Leader returns the name of the leader, from the first instance that answers and knows the leader.
func (g *Guest) Leader(ctx context.Context) (string, error) {
	r, err := g.first(ctx, knowsLeader)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNotReady, err)
	}
	return plain.Text(r.Status.Leader), nil
}

func knowsLeader(r Report) bool {
	return r.Status != nil && r.Status.Leader != "" && r.Status.Attached
}

func (g *Guest) first(ctx context.Context, wanted func(Report) bool) (Report, error) {
	places, errs := g.Places(ctx)
	asking, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan Report, len(places))
	for _, p := range places {
		g.asking.Go(func() {
			g.here(asking, &p)
			answers <- p
		})
	}
	answered := ""
	for range places {
		switch r := <-answers; {
		case wanted(r):
			return r, nil
		case r.Status != nil && answered == "":
			answered = fmt.Sprintf("%s at %s answers and has no leader: %s", r.Status.Name, r.Addr,
				cmp.Or(r.Answer.Failed, r.Status.Waiting))
		case r.Status == nil:
			errs = append(errs, r.Err)
		}
	}
	if answered != "" {
		return Report{}, errors.New(answered)
	}
	return Report{}, fmt.Errorf("no instance answers: %w", errors.Join(errs...))
}
