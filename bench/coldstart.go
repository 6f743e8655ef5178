package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-lock/mortise"
)

// coldstart starts n instances in this process at the same time. Three of them are the founders
// of the group. The field Took is the time until all instances are ready. The group has no grace,
// because a grace would be added to this time.
func coldstart(n int) func(ctx context.Context, r *Run) (Result, error) {
	return func(ctx context.Context, r *Run) (Result, error) {
		n := r.scaled(n)
		began := time.Now()
		nodes, err := openAtOnce(ctx, r.Peer, n)
		took := time.Since(began)
		defer func() { _ = together(len(nodes), func(i int) error { return closeNode(nodes[i]) }) }()
		if err != nil {
			return Result{}, err
		}
		return Result{Count: float64(n), Took: took}, nil
	}
}

func closeNode(node *mortise.Node) error {
	if node == nil {
		return nil
	}
	return node.Close()
}

func openAtOnce(ctx context.Context, p Peer, n int) ([]*mortise.Node, error) {
	if err := roomFor(uint64(n)*memberSockets, uint64(n)*memberBytes); err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(n * addressesEach)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute+time.Duration(n)*100*time.Millisecond)
	defer cancel()
	nodes := make([]*mortise.Node, n)
	return nodes, together(n, func(i int) (err error) {
		c := mortiseConfig(strings.HasSuffix(p.Name, "-tls"), addresses, i)
		for f := range membersOf {
			c.Founders = append(c.Founders, fmt.Sprintf("node-%d", f))
		}
		if nodes[i], err = mortise.Start(ctx, c); err != nil {
			return err
		}
		return nodes[i].Ready(ctx)
	})
}

// beside runs one caller on a group of three members and n idle instances. The field Least is the
// ratio of the 99th percentile of Lock to the same percentile without the n instances.
func beside(n int) func(ctx context.Context, r *Run) (Result, error) {
	return func(ctx context.Context, r *Run) (Result, error) {
		n := r.scaled(n)
		alone, err := aloneBeside(ctx, r, membersOf)
		if err != nil {
			return Result{}, err
		}
		result, err := aloneBeside(ctx, r, n+membersOf)
		result.Count, result.Least = float64(n), float64(result.P99)/float64(max(alone.P99, 1))
		return result, err
	}
}

func aloneBeside(ctx context.Context, r *Run, n int) (Result, error) {
	nodes, err := openIdle(ctx, r.Peer, n)
	defer func() { _ = together(len(nodes), func(i int) error { return nodes[i].Close() }) }()
	if err != nil {
		return Result{}, err
	}
	time.Sleep(2*time.Second + time.Duration(n)*10*time.Millisecond) // until the nodes have finished starting
	var l loop
	return l.run(ctx, 1, r.Duration, func(ctx context.Context, _, turn int) error {
		return l.pair(ctx, mortiseMember{nodes[turn%2]}, "beside")
	})
}
