package reply

// Slot is where the lines of a name are remembered.
var Slot = slot
