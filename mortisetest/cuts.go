package mortisetest

import "slices"

// Isolate silently cuts the connections between the given nodes and all others: data does not
// arrive, and no error is reported. The given nodes still reach each other. After Heal, data that
// was sent during the cut is delivered, as TCP does by retransmission.
//
//	cluster.Isolate(cluster.Leader())
//	cluster.Isolate(0, 1) // in a cluster of five: two on one side, three on the other
func (c *Cluster) Isolate(nodes ...int) {
	c.t.Helper()
	for _, i := range nodes {
		c.place(i)
		for j := range c.places {
			if !slices.Contains(nodes, j) {
				c.cut(route{i, j}, route{j, i})
			}
		}
	}
	c.rewire()
}

// Cut silently cuts the connections between two nodes. Both nodes still reach all other nodes.
//
//	cluster.Cut(0, 1)
func (c *Cluster) Cut(i, j int) {
	c.t.Helper()
	c.place(i)
	c.place(j)
	c.cut(route{i, j}, route{j, i})
	c.rewire()
}

// CutOneWay silently blocks the data that the node from sends to the node to. The opposite
// direction still works.
//
//	cluster.CutOneWay(0, 1) // 1 receives nothing from 0, but 0 receives from 1
func (c *Cluster) CutOneWay(from, to int) {
	c.t.Helper()
	c.place(from)
	c.place(to)
	c.cut(route{from, to})
	c.rewire()
}

// Heal removes all cuts. Nodes that were cut off reconnect within a few seconds. Use Ready to wait
// for that.
//
//	cluster.Heal()
func (c *Cluster) Heal() {
	c.mu.Lock()
	clear(c.cuts)
	c.mu.Unlock()
	c.rewire()
}

func (c *Cluster) cut(routes ...route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range routes {
		c.cuts[r] = true
	}
}

func (c *Cluster) rewire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, from := range c.places {
		for j, to := range c.places {
			r := route{i, j}
			want := i != j && (c.cuts[r] || from.paused || to.paused)
			switch {
			case want == c.closed[r]:
			case want:
				c.net.CutOneWay(from.host, to.host)
			default:
				c.net.HealOneWay(from.host, to.host)
			}
			c.closed[r] = want
		}
	}
}
