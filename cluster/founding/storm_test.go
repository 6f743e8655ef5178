package founding

import (
	"fmt"
	"testing"
	"time"
)

// perInstance is the limit of questions per second for one instance, averaged over the fleet.
const perInstance = 8

// The number of questions asked in any second of virtual time must be at most linear in the size
// of the fleet. Until a group is founded, the network delivers all messages or none. After the
// group has lost its leader, it delivers none.
func TestQuestionsGrowWithTheFleet(t *testing.T) {
	for _, n := range []int{64, 256} {
		for name, named := range map[string]naming{"founders": nameFounders, "all": nameAll, "others": nameOthers} {
			if n > 64 && (named == nameOthers || testing.Short() && named == nameAll) {
				continue // nameOthers takes as long as nameAll
			}
			for _, loss := range []float64{0, 1} {
				t.Run(fmt.Sprintf("%d, Join names %s, loss %v", n, name, loss), func(t *testing.T) {
					w := newWorld(uint64(n), founders(n, "n0", "n1", "n2")...)
					w.named, w.loss = named, loss
					w.run(time.Millisecond, nil)
					for _, s := range w.slots {
						s.start()
					}
					if born := w.run(20*time.Second, w.settled); born != (loss == 0) {
						t.Errorf("all are members of one group: %v", born)
					} else if born {
						t.Logf("all are members after %v", w.now)
					}
					w.mustAskLittle(t)
					if loss > 0 {
						return
					}
					w.asked = nil // all instances lose their leader, and every packet is lost
					w.loss = 1
					for _, s := range w.slots[:3] {
						s.crash()
					}
					w.run(20*time.Second, nil)
					w.mustAskLittle(t)
				})
			}
		}
	}
}

func (w *world) mustAskLittle(t *testing.T) {
	t.Helper()
	most, from := 0, 0
	for i, at := range w.asked {
		for at-w.asked[from] >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	if limit := perInstance * len(w.slots); most > limit {
		t.Errorf("%d instances start %d questions in one second, more than %d", len(w.slots), most, limit)
	}
	t.Logf("%d instances start up to %d questions in a second, %.1f each", len(w.slots), most,
		float64(most)/float64(len(w.slots)))
}

func TestAMemberWithALeaderAsksSeldom(t *testing.T) {
	w := newWorld(1, founders(8, "n0", "n1", "n2")...)
	w.named = nameAll
	for _, s := range w.slots {
		s.start()
	}
	if !w.run(10*time.Second, w.settled) {
		t.Fatal("not one group")
	}
	w.run(5*time.Second, nil)
	w.asked = nil
	w.run(10*time.Minute, nil)
	if n := len(w.asked); n < 8*10 || n > 8*2*20 {
		t.Errorf("8 members with a leader asked %d questions in ten minutes, want one or two in 30 to 60 s each", n)
	}
}

func TestJoinersAreNotAskedBack(t *testing.T) {
	w := newWorld(1, founders(6, "n0", "n1", "n2")...)
	for _, s := range w.slots[2:] {
		s.start() // two founders are missing, so all instances wait
	}
	w.run(30*time.Second, nil)
	for _, s := range w.slots[2:] {
		for _, p := range s.core.contacts.places {
			for _, o := range w.slots[3:] {
				if p.addr == o.addr {
					t.Errorf("%s asks %s, which is no founder and which Join does not name", s.name, o.name)
				}
			}
		}
	}
}

// Join names only one instance, which is no founder. Its answers name the founders.
func TestFoundersMeetBehindOneSeed(t *testing.T) {
	w := newWorld(1, founders(6, "n0", "n1", "n2")...)
	w.named, w.hushed = nameSeed, true
	for _, s := range w.slots {
		s.start()
	}
	if !w.run(10*time.Second, w.settled) {
		t.Errorf("not one group in 10 s\n%s", w.describe())
	}
}

// All founders have been replaced as voters. The Join addresses are their dead addresses and the
// address of one instance that is no founder.
func TestAJoinerMeetsAGroupWhoseFoundersAreGone(t *testing.T) {
	s := founders(1, "f0", "f1", "f2")[0]
	c := New(Config{Instance: ordinary(false).self.instance, Name: "z", Addr: "z:1", Settings: s, Rules: 1})
	c.Places([]Entry{{Name: "x", Addrs: []string{"f0:1", "f1:1", "f2:1", "m:1"}, Resolved: always}}, nil)
	asked := map[string]int{}
	for range 200 {
		c.now += 100 * time.Millisecond
		out := c.Tick(c.now, 1, Random{Spread: uint64(c.now), Instance: c.self.instance})
		for _, q := range out.Questions {
			asked[q.Addr]++
			switch q.Addr {
			case "m:1": // a member whose group has no leader now
				who := InstanceInfo{
					Instance: configuration()[0].Instance, Name: "m", Addr: "m:1", Phase: Member, Group: 7, At: 9,
					Settings: s,
					Voters:   []Voter{{Raft: 5, Instance: configuration()[1].Instance, Addr: "v:1", Life: 1}},
				}
				c.Result(c.now, q.ID, c.now, Answered, who.Instance, appendInfo(nil, who))
			default:
				c.Result(c.now, q.ID, c.now, Silent, c.self.instance, nil)
			}
		}
	}
	if asked["v:1"] == 0 {
		t.Errorf("it has asked %v, and never the voter that the member has named", asked)
	}
}

// Before founding, a founder looks for a living group at some of the other Join addresses. Their
// silence does not block the founding.
func TestAFounderLooksForAGroupOfOthersFirst(t *testing.T) {
	for _, silent := range []bool{false, true} {
		w := newWorld(3, founders(3, "n0", "n1", "n2")...)
		for i := range 40 {
			addr := fmt.Sprintf("10.9.0.%d:1", i)
			w.extraJoin = append(w.extraJoin, addr)
			w.silent[addr] = silent
		}
		for _, s := range w.slots {
			s.start()
		}
		if !w.run(15*time.Second, w.settled) {
			t.Errorf("silent %v: not founded in 15 s\n%s", silent, w.describe())
		}
		for _, s := range w.slots {
			asked := 0
			for _, p := range s.core.contacts.places {
				if p.tried && p.addr[:5] == "10.9." {
					asked++
				}
			}
			if asked < maxSample || silent && asked > 2*maxSample {
				t.Errorf("silent %v: %s asked %d other addresses behind Join, want about %d", silent, s.name, asked,
					maxSample)
			}
		}
	}
}
