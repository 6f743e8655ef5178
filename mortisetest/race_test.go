//go:build race

package mortisetest_test

// large is the number of nodes of a large cluster: enough that Founders are set, and few, because
// the race detector makes each handshake ten times as long.
const large = 20
