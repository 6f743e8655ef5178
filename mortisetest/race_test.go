//go:build race

package mortisetest_test

// large is how many nodes a large cluster has: enough that Founders are set, and few, since the
// race detector makes each handshake ten times as long.
const large = 20
