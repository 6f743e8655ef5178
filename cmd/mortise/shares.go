package main

import "sync"

// A client is a derived secret (its hash or its *program), the number of a token, or one of these:
type (
	localUser uint32   // the ID of a user of this machine
	anyone    struct{} // a client of which nothing is known
)

// shares divides a limited number of places among clients. A client gets another place only while
// it has fewer than are free. So one client alone can have half of the places, and n clients that
// take all they can get leave one part of n+1 to the next one. It is safe for concurrent use.
type shares struct {
	limit int

	mu    sync.Mutex // guards the fields below
	taken int
	each  map[any]int // places of each client that has any
}

func newShares(limit int) *shares { return &shares{limit: limit, each: map[any]int{}} }

// take takes n places for a client, or none. If it reports true, the caller calls give with the
// same arguments later.
func (s *shares) take(client any, n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.each[client]+n > s.limit-s.taken {
		return false
	}
	s.taken += n
	s.each[client] += n
	return true
}

func (s *shares) give(client any, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken -= n
	if s.each[client] -= n; s.each[client] == 0 {
		delete(s.each, client)
	}
}
