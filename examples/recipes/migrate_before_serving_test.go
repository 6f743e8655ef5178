package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mortise-lock/mortise"
)

// schema represents the database: the version of its schema, and the token of the last migration.
type schema struct {
	mu      sync.Mutex
	version int
	token   mortise.Token
}

func (s *schema) at() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// migrate changes the tables and sets the version, in one transaction:
//
//	UPDATE schema_version SET version = $1, token = $2 WHERE version = $1 - 1 AND token <= $2
func (s *schema) migrate(to int, token mortise.Token) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version != to-1 || token < s.token {
		return errors.New("another instance has migrated meanwhile")
	}
	s.version, s.token = to, token
	return nil
}

// Three instances of a new version start at the same time, and each ensures that the schema has
// version 7. One instance migrates while the lock makes the other two wait. The token stops an
// instance that was paused in the middle of the migration.
func Example_migrateBeforeServing() {
	ctx := context.Background()
	nodes, stop := startFleet(ctx, "orders-0", "orders-1", "orders-2")
	defer stop()

	db := schema{version: 6}
	ensure := func(node *mortise.Node) error {
		return node.Do(ctx, "migrations", func(ctx context.Context, token mortise.Token) error {
			if db.at() >= 7 {
				return nil
			}
			fmt.Println("migrating to 7") // may take minutes: the lease is renewed automatically
			return db.migrate(7, token)
		})
	}
	var starting sync.WaitGroup
	for _, node := range nodes {
		starting.Go(func() { check(ensure(node)) })
	}
	starting.Wait()
	fmt.Println("three instances serve, on schema", db.at())
	// Output:
	// migrating to 7
	// three instances serve, on schema 7
}
