package metrics

// NativeCell is where a native histogram counts a duration, of NativeCells.
var NativeCell = nativeCell

// NativeCells is how many cells there are.
const NativeCells = nativeCells
