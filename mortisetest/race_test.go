//go:build race

package mortisetest_test

// large is how many nodes a large cluster has. With the race detector each handshake costs ten times as much.
const large = 16
