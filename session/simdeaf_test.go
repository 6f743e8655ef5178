package session_test

import (
	"testing"
	"time"

	"github.com/mortise-lock/mortise/internal/lab/slow"
)

// TestSimulationOfDeafness cuts the direction from the leader to one member for good. After two
// TTLs the member must have no session and no lock, and the other members must have lost none.
func TestSimulationOfDeafness(t *testing.T) {
	slow.UnderRace(t)
	t.Parallel()
	for seed := range uint64(20) {
		config := simConfig{voters: 3, plain: 3, callers: 3, keys: 2, ttl: 2 * time.Second, drift: 0.009, long: 0.1}
		s := newSim(t, seed, config)
		s.start()
		s.runUntil(3 * time.Second)
		deaf, leader := s.nodes[3+seed%3], s.nodes[s.leader]
		session := deaf.client.Status(deaf.clock()).Session
		s.silence(leader, deaf, time.Hour)
		// First the holds of the member end, and then its session.
		s.runUntil(s.now + time.Duration(2.1*float64(config.ttl)) + 200*time.Millisecond)
		for _, info := range leader.machine.Sessions() {
			if info.ID == session {
				s.fail("the session of node %d, which receives nothing, lives: %+v", deaf.id, leader.machine.Counts())
			}
		}
		lost, granted := s.stats.lost, s.stats.granted
		s.runUntil(s.now + 10*config.ttl)
		if s.stats.lost != lost || s.stats.granted < granted+20 {
			s.fail("%d locks were lost, %d granted, by the other members", s.stats.lost-lost,
				s.stats.granted-granted)
		}
		if k := leader.keeper.Status(); k.Sessions > len(s.nodes)+256 {
			s.fail("left with %+v", k)
		}
	}
}
