package sim

import (
	"fmt"
	"time"
)

// foundingRounds is the number of rounds of faults in a founding.
const foundingRounds = 2

// DrawFounding returns the Config for RunFounding: a run that only tests the founding of a group.
// In it, 2, 3 or 5 machines start, links are cut, and machines restart. At the end the network is
// healed, and all machines must be members of one group.
func DrawFounding(number uint64) Config {
	c := Draw(number)
	c.Machines = []int{2, 3, 5}[number%3]
	c.Late, c.Quiet = 0, false
	c.Voters, c.Founders, c.Keys, c.Callers = 3, nil, 1, 1
	if number/3%2 == 0 {
		for i := range min(c.Machines, 1+int(number/6%3)) {
			c.Founders = append(c.Founders, fmt.Sprintf("n%d", i))
		}
	}
	c.Durable = number/18%2 == 0
	c.Think, c.Long, c.Cancel, c.Try, c.Kinds, c.Nest, c.Options, c.Steps = time.Second, 0, 0, 0, 0, 0, 0, 0
	c.Jobs = 0
	c.Sticky, c.Readers = 0, 0
	c.TTL, c.Grace = time.Second, time.Second
	c.Trouble = Trouble{Drop: c.Trouble.Drop}
	if c.Durable {
		c.Trouble.Brittle = []float64{0, 0.05}[number/36%2]
	}
	c.Heal, c.Insider = true, number%4 == 1
	return c
}

// scatter is a multiplier that is not divisible by 2 or 3. The number of combinations has no prime
// factors other than 2 and 3, so a multiplication by scatter modulo that number is one to one.
const scatter = 0x9e3779b9*6 + 1

// RunFounding runs a founding. It multiplies number/6 by scatter, and the digits of the product
// select the cuts and restarts of both rounds. So a few consecutive numbers are spread over all
// combinations.
func RunFounding(number uint64, cfg Config) *Report {
	w := prepare(cfg, func(*proc) {})
	w.note("birth %d: %v", number, cfg.String())
	t := cfg.Trouble
	w.odds.brittle, w.odds.drop = t.Brittle, t.Drop
	n := &nemesis{w: w}
	for _, m := range w.machines {
		w.after(w.between(0, time.Second), m.ensureUp)
	}
	digit := func(base uint64) uint64 {
		d := number % base
		number /= base
		return d
	}
	machines := uint64(1) << cfg.Machines
	rounds := machines * 3 * machines
	number = number / 6 * scatter % (rounds * rounds) // number % 6 selects machines and settings
	for range foundingRounds {
		side, oneWay, restarts := digit(machines), digit(3), digit(machines)
		w.after(w.between(0, 2*time.Second), func() {
			w.strike(func() (string, func()) { return "cut", func() { w.cutBy(side, oneWay) } })
		})
		if w.chance(0.3) {
			w.after(w.between(0, 5*time.Second), func() {
				w.strike(func() (string, func()) { return "outage", n.outage })
			})
		}
		for i, m := range w.machines {
			if restarts>>i&1 == 1 {
				w.after(w.between(0, 3*time.Second), func() {
					w.strike(func() (string, func()) {
						return "crash", func() { n.crash(m, w.chance(0.5)) }
					})
				})
			}
		}
		w.pass(w.now+w.between(2*time.Second, 9*time.Second), nil)
	}
	return w.finish()
}

// cutBy cuts the links between machines with different bits. The parameter side has one bit for
// each machine. If oneWay is 0, cutBy cuts both directions. Otherwise, it cuts only the direction
// that begins at the machines whose bit equals oneWay-1.
func (w *fleet) cutBy(side, oneWay uint64) {
	if w.calm {
		return
	}
	w.note("cut %b, one way: %d", side, oneWay)
	w.net.mend()
	for i, a := range w.machines {
		for j, b := range w.machines {
			from, to := side>>i&1, side>>j&1
			if from != to && (oneWay == 0 || from == oneWay-1) {
				w.net.sever(a.machine, b.machine)
			}
		}
	}
}
