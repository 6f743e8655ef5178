// Quickstart shows one lock across three processes, and what happens when one of them is killed while it holds the lock and leads.
//
//	go run ./examples/quickstart
//
// It starts three processes of itself on loopback. Each in turn locks one key and adds one to a number that a small server keeps; the
// server compares fencing tokens. Half-way the leader is killed, with SIGKILL, while it holds the lock, and started again as a plain
// member. At the end the number must equal the sum of all turns and tokens must have risen without exception, or the exit status is 1.
//
// What it promises to show and nothing more: it runs for about fifteen seconds, needs no other set-up, and leaves nothing behind. The
// instances use the smallest lease (1 s) so that the wait for the dead holder's lease is short, and no grace (Grace: -1) because no
// earlier group can exist. The three roles are in files of their own: the worker that locks, the resource that compares, the view.
package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

func main() {
	work := flag.String("worker", "", "run as the worker of this name (used by the quickstart itself)")
	addresses := flag.String("addresses", "", "the workers' addresses, with commas")
	resource := flag.String("resource", "", "the address of the resource")
	flag.Parse()
	var err error
	if *work != "" {
		err = runWorker(*work, strings.Split(*addresses, ","), *resource)
	} else {
		err = runShow(os.Stdout, 14*time.Second)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// names are what the three workers are called.
var names = [...]string{"anna", "ben", "cleo"}

// show is the parent process: it starts the workers, watches them, kills one and judges the end.
type show struct {
	addresses []string
	resource  *resource
	view      *view
	workers   map[string]*exec.Cmd
	events    chan event

	killed     string    // the worker that was killed, "" before
	killedAt   time.Time // when
	takenOver  time.Duration
	lastToken  uint64
	fellBack   int // grants whose token was not higher than the one before
	grants     int
	unexpected error
}

func runShow(out *os.File, length time.Duration) error {
	addresses, err := freeAddresses(len(names))
	if err != nil {
		return err
	}
	r, err := startResource()
	if err != nil {
		return err
	}
	defer r.close()
	s := &show{addresses: addresses, resource: r, view: newView(out), workers: map[string]*exec.Cmd{}, events: make(chan event, 256)}
	defer s.killAll()
	for _, name := range names {
		if err := s.start(name); err != nil {
			return err
		}
	}
	s.watch(length)
	return s.judge(out)
}

// watch follows the workers for the given time, counted from the first grant, and kills the leader half-way.
func (s *show) watch(length time.Duration) {
	birth := time.After(20 * time.Second)
	var half, end <-chan time.Time
	armed := false
	for {
		select {
		case <-birth:
			if s.grants == 0 {
				s.unexpected = fmt.Errorf("nobody was granted the lock within 20 s")
				return
			}
		case <-half:
			armed = true
		case <-end:
			return
		case e := <-s.events:
			if s.grants == 0 && e.Kind == granted {
				half, end = time.After(length/2), time.After(length)
			}
			s.take(e)
			if armed && e.Kind == granted && e.Leading {
				armed = false
				s.kill(e.Worker)
			}
			if s.unexpected != nil {
				return
			}
		}
	}
}

// take notes one event of a worker.
func (s *show) take(e event) {
	switch e.Kind {
	case granted:
		s.grants++
		if e.Token <= s.lastToken {
			s.fellBack++
		}
		s.lastToken = e.Token
		if s.killed != "" && s.takenOver == 0 && e.Worker != s.killed {
			s.takenOver = time.Since(s.killedAt)
			s.view.note("%s was granted the lock %v after the kill", e.Worker, s.takenOver.Round(time.Millisecond))
			if err := s.start(s.killed); err != nil {
				s.unexpected = err
			}
		}
	case ended:
		if e.Worker == s.killed && s.takenOver == 0 {
			return // the kill worked
		}
		s.unexpected = fmt.Errorf("worker %s ended by itself: %s", e.Worker, e.Text)
	case noted:
		s.view.note("%s: %s", e.Worker, e.Text)
	}
	s.view.show(e, s.resource.number())
}

// kill ends the leader with SIGKILL while it holds the lock.
func (s *show) kill(name string) {
	s.killed, s.killedAt = name, time.Now()
	if err := s.workers[name].Process.Kill(); err != nil {
		s.unexpected = fmt.Errorf("kill %s: %w", name, err)
	}
	s.view.note("killed %s (SIGKILL): it leads the group and holds the lock", name)
}

// judge prints what happened and returns an error if anything is not as promised.
func (s *show) judge(out *os.File) error {
	number, turns, refused := s.resource.tally()
	sum := 0
	fmt.Fprintf(out, "\nturns: ")
	for _, name := range names {
		fmt.Fprintf(out, "%s %d  ", name, turns[name])
		sum += turns[name]
	}
	fmt.Fprintf(out, "\nthe number is %d, the sum of all turns is %d\n", number, sum)
	fmt.Fprintf(out, "%d grants, tokens rising: %v (%d writes with an old token were refused)\n", s.grants, s.fellBack == 0, refused)
	if s.killed != "" {
		fmt.Fprintf(out, "from the kill of %s to the next grant: %v\n", s.killed, s.takenOver.Round(time.Millisecond))
	}
	switch {
	case s.unexpected != nil:
		return s.unexpected
	case number != sum:
		return fmt.Errorf("the number (%d) is not the sum of all turns (%d): two workers were inside at once", number, sum)
	case s.fellBack > 0:
		return fmt.Errorf("%d grants had a token that did not rise", s.fellBack)
	case s.killed == "" || s.takenOver == 0:
		return fmt.Errorf("the leader was not killed while it held the lock, or nobody took over")
	}
	for _, name := range names {
		if turns[name] == 0 {
			return fmt.Errorf("%s had no turn", name)
		}
	}
	fmt.Fprintln(out, "all as promised")
	return nil
}

// freeAddresses finds loopback addresses that nobody listens on. They lie below the ports that systems give to outgoing connections:
// the kernel would hand those out again before the workers, or the one that is started anew, could bind them.
func freeAddresses(n int) ([]string, error) {
	var found []string
	var last error
	for range 100 * n {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(12_000)))
		if err != nil {
			last = err
			continue
		}
		defer l.Close()
		if found = append(found, l.Addr().String()); len(found) == n {
			return found, nil
		}
	}
	return nil, fmt.Errorf("no free ports: %w", last)
}
