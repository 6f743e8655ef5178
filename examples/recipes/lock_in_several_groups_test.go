package recipes_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"

	"github.com/mortise-lock/mortise"
)

// groups are nodes of several groups. Each group has its own leader, which may run in another
// process than that of the next group.
type groups []*mortise.Node

// startGroups starts a node of each group. In production each has Join, and its own port.
func startGroups(ctx context.Context, count int) (all groups) {
	for i := range count {
		node, err := mortise.Start(ctx, mortise.Config{
			Cluster: fmt.Sprintf("orders-%d", i), Logger: slog.New(slog.DiscardHandler),
		})
		check(err)
		all = append(all, node)
	}
	return all
}

// of returns the node for the keys of a tenant. All instances must have the same number of groups.
func (g groups) of(tenant string) *mortise.Node {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(tenant)) // never fails
	return g[hash.Sum32()%uint32(len(g))]
}

// More locks than one leader can serve are divided among groups, by tenant, so that a request for
// several keys of a tenant needs one group.
func Example_lockInSeveralGroups() {
	ctx := context.Background()
	all := startGroups(ctx, 4)
	served := make([]int, len(all))
	for i := range 100 {
		tenant := fmt.Sprintf("tenant-%d", i)
		node := all.of(tenant)
		lock, err := node.LockAll(ctx, tenant+"/stock", tenant+"/bill")
		check(err)
		for j := range all {
			if all[j] == node {
				served[j]++
			}
		}
		check(lock.Unlock(ctx))
	}
	fmt.Println("locks of each group:", served)
	for _, node := range all {
		check(node.Leave(ctx))
	}
	// Output:
	// locks of each group: [25 25 25 25]
}
