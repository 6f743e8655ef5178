// Quickstart shows one lock across three processes, and what happens when a process is killed while
// it holds the lock and leads.
//
//	go run ./examples/quickstart
//	go run ./examples/quickstart -secret "$(openssl rand -hex 32)" -dir /tmp/quickstart
//
// It starts itself three times as worker processes, on loopback. In turn, each worker locks one key
// and adds one to a number on a small server, which compares fencing tokens. First the leader and
// then another worker are killed with SIGKILL while they hold the lock, and started again. A
// restarted worker is a new instance, which becomes a voter in place of its earlier incarnation.
// With -dir, the workers keep their state in that directory, and each restarts as the same voter.
// With -secret, all connections are encrypted. Without -secret, every user of this machine can take
// and break the locks while the program runs. At the end, the number must equal the sum of all
// turns, and every token must have been higher than the earlier ones; otherwise the exit status is
// 1.
//
// The program runs for about fifteen seconds, needs no setup, and leaves nothing behind. The
// instances use the shortest lease (1 s), and no grace (Grace: -1), because no earlier group can
// exist.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	var o options
	work := flag.String("worker", "", "run as the worker of this name (used by the quickstart itself)")
	addresses := flag.String("addresses", "", "the workers' addresses, with commas (used by the quickstart itself)")
	resource := flag.String("resource", "", "the address of the resource (used by the quickstart itself)")
	flag.StringVar(&o.dir, "dir", "", "a directory for the workers' state; without it they keep it in memory")
	flag.StringVar(&o.secret, "secret", "", "the cluster's secret, at least 16 bytes")
	flag.Parse()
	var err error
	if *work != "" {
		err = runWorker(*work, strings.Split(*addresses, ","), *resource, o)
	} else {
		err = runShow(os.Stdout, 14*time.Second, o)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

type options struct{ dir, secret string }

const killings = 2

var names = [...]string{"anna", "ben", "cleo"}

// show is the parent process: it starts the workers, watches them, kills two of them and judges the
// result.
type show struct {
	options
	addresses []string
	resource  *resource
	view      *view
	workers   map[string]*exec.Cmd
	events    chan event

	kills      []kill
	granted    []event
	fellBack   int // grants whose token was not higher than that of an earlier grant
	grants     int
	unexpected error
}

type kill struct {
	worker    string
	at        time.Time
	takenOver time.Duration // time until another worker was granted the lock; 0 if none was yet
	back      bool          // whether the killed worker has taken a turn after its restart
}

func runShow(out *os.File, length time.Duration, o options) error {
	addresses, err := freeAddresses(len(names))
	if err != nil {
		return err
	}
	if o.dir != "" {
		if o.dir, err = filepath.Abs(o.dir); err != nil {
			return err
		}
		if err := os.MkdirAll(o.dir, 0o700); err != nil {
			return err
		}
	}
	r, err := startResource()
	if err != nil {
		return err
	}
	defer r.close()
	s := &show{options: o, addresses: addresses, resource: r, view: newView(out), workers: map[string]*exec.Cmd{},
		events: make(chan event, 256)}
	defer s.killAll()
	for _, name := range names {
		if err := s.start(name); err != nil {
			return err
		}
	}
	s.watch(length)
	return s.judge(out)
}

// overtime limits the show if the last restarted worker does not come back: the show then ends
// after this multiple of its length.
const overtime = 5

func (s *show) watch(length time.Duration) {
	birth := time.After(20 * time.Second)
	var began time.Time
	var end, limit <-chan time.Time
	over := false
	for s.unexpected == nil && !(over && s.allBack()) {
		select {
		case <-birth:
			if s.grants == 0 {
				s.unexpected = fmt.Errorf("no worker was granted the lock within 20 s")
			}
		case <-end:
			over = true
		case <-limit:
			return
		case e := <-s.events:
			if s.grants == 0 && e.Kind == granted {
				began, end, limit = time.Now(), time.After(length), time.After(overtime*length)
			}
			s.take(e)
			due := length * time.Duration(len(s.kills)+1) / time.Duration(killings+1)
			if e.Kind == granted && time.Since(began) >= due && s.mayKill(e) {
				s.kill(e.Worker)
			}
		}
	}
}

func (s *show) allBack() bool { return len(s.kills) == killings && s.kills[killings-1].back }

// mayKill reports whether to kill the worker of e. The first worker to be killed is the leader. The
// second is another worker, after the first has had a turn again.
func (s *show) mayKill(e event) bool {
	if len(s.kills) == killings {
		return false
	}
	if len(s.kills) == 0 {
		return e.Leading
	}
	last := s.kills[len(s.kills)-1]
	return last.back && e.Worker != last.worker
}

func (s *show) take(e event) {
	switch e.Kind {
	case granted:
		s.grants++
		s.fellBack += s.compare(e)
		s.granted = append(s.granted, e)
		s.afterKill(e)
	case ended:
		if !slices.ContainsFunc(s.kills, func(k kill) bool { return k.worker == e.Worker && k.takenOver == 0 }) {
			s.unexpected = fmt.Errorf("worker %s ended by itself: %s", e.Worker, e.Text)
		}
	case noted:
		s.view.note("%s: %s", e.Worker, e.Text)
	}
	s.view.show(e, s.resource.number())
}

// compare counts the grants whose order contradicts their tokens. Two grants are ordered only if
// one ended before the other was requested. Without this rule, a worker that gets no processor for
// longer than its lease could report its grant after the grant of the next holder.
func (s *show) compare(e event) (wrong int) {
	for _, other := range s.granted {
		first, second := other, e
		if e.At.Before(other.Asked) {
			first, second = e, other
		}
		if first.At.Before(second.Asked) && second.Token <= first.Token || first.Token == second.Token {
			wrong++
			s.view.note("token %d of %s (asked for %v, held %v) is not above %d of %s (held %v)",
				second.Token, second.Worker, second.Asked, second.At, first.Token, first.Worker, first.At)
		}
	}
	return wrong
}

// afterKill records the first turn of another worker after a kill, restarts the killed worker, and
// records its first turn.
func (s *show) afterKill(e event) {
	if len(s.kills) == 0 {
		return
	}
	k := &s.kills[len(s.kills)-1]
	switch {
	case e.Worker == k.worker && k.takenOver != 0 && !k.back:
		k.back = true
		s.view.note("%s is back", k.worker)
	case e.Worker != k.worker && k.takenOver == 0:
		k.takenOver = time.Since(k.at)
		s.view.note("%s was granted the lock %v after the kill; %s is started again", e.Worker,
			k.takenOver.Round(time.Millisecond), k.worker)
		s.unexpected = s.start(k.worker)
	}
}

func (s *show) kill(name string) {
	s.kills = append(s.kills, kill{worker: name, at: time.Now()})
	if err := s.workers[name].Process.Kill(); err != nil {
		s.unexpected = fmt.Errorf("kill %s: %w", name, err)
	}
	s.view.note("killed %s (SIGKILL) while it holds the lock; leader: %s", name, s.view.leader)
}

func (s *show) judge(out *os.File) error {
	number, turns, refused := s.resource.tally()
	sum := 0
	say(out, "\nturns: ")
	for _, name := range names {
		say(out, "%s %d  ", name, turns[name])
		sum += turns[name]
	}
	say(out, "\nthe number is %d, the sum of all turns is %d\n", number, sum)
	say(out, "%d grants, tokens rising: %v (%d writes with an old token were refused)\n", s.grants,
		s.fellBack == 0, refused)
	for _, k := range s.kills {
		say(out, "from the kill of %s to the next grant: %v\n", k.worker, k.takenOver.Round(time.Millisecond))
	}
	switch {
	case s.unexpected != nil:
		return s.unexpected
	case number != sum:
		return fmt.Errorf("the number (%d) is not the sum of all turns (%d): two workers were inside at once", number,
			sum)
	case s.fellBack > 0:
		return fmt.Errorf("%d grants had a token that did not rise", s.fellBack)
	case len(s.kills) < killings:
		return fmt.Errorf("%d of %d workers were killed while they held the lock", len(s.kills), killings)
	}
	for _, k := range s.kills {
		if k.takenOver == 0 || !k.back {
			return fmt.Errorf("after the kill of %s: taken over %v, back %v", k.worker, k.takenOver != 0, k.back)
		}
	}
	for _, name := range names {
		if turns[name] == 0 {
			return fmt.Errorf("%s had no turn", name)
		}
	}
	say(out, "all as promised\n")
	return nil
}

// freeAddresses returns free loopback addresses. Their ports are below the range for outgoing
// connections, so that the kernel does not assign them before a worker binds them.
func freeAddresses(n int) ([]string, error) {
	var found []string
	var last error
	for range 100 * n {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		if err != nil {
			last = err
			continue
		}
		defer func() { _ = l.Close() }()
		if found = append(found, l.Addr().String()); len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("no free ports: %w", last)
}
