//go:build race

package mortisetest_test

// large is the number of nodes of a large cluster. With more than 16 nodes, New sets Founders. The
// cluster is not larger, because each handshake takes ten times as long with the race detector.
const large = 20
