package mortisetest

import "slices"

// route is a direction between two nodes.
type route struct{ from, to int }

// Isolate cuts the given nodes off from all others, silently: nothing that is sent arrives, and no
// error is reported. They still reach each other. Data that was sent waits until Heal, as TCP would
// retransmit it.
//
//	cluster.Isolate(cluster.Leader())
//	cluster.Isolate(0, 1) // of five: two on one side, three on the other
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

// Cut cuts two nodes off from each other, silently. Both still reach all other nodes.
//
//	cluster.Cut(0, 1)
func (c *Cluster) Cut(i, j int) {
	c.t.Helper()
	c.place(i)
	c.place(j)
	c.cut(route{i, j}, route{j, i})
	c.rewire()
}

// CutOneWay stops what one node sends to another, silently. The other direction still works.
//
//	cluster.CutOneWay(0, 1) // 1 receives nothing from 0, and 0 still hears 1
func (c *Cluster) CutOneWay(from, to int) {
	c.t.Helper()
	c.place(from)
	c.place(to)
	c.cut(route{from, to})
	c.rewire()
}

// Heal ends all cuts. Nodes that were cut off reconnect by themselves, within a few seconds: see
// Ready.
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

// rewire applies the cuts and pauses to the network.
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
