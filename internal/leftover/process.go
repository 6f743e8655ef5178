package leftover

// variable is inherited by all processes that the tests start. Its value is the ID of the process
// of the tests.
const variable = "MORTISE_TESTS_PROCESS"

// process is one that is left.
type process struct {
	id      int
	command string
}
