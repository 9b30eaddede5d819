package h2

import "encoding/binary"

// frameKind is the type of a frame.
type frameKind uint8

const (
	frameData         frameKind = 0
	frameHeaders      frameKind = 1
	framePriority     frameKind = 2
	frameReset        frameKind = 3
	frameSettings     frameKind = 4
	framePush         frameKind = 5
	framePing         frameKind = 6
	frameGoAway       frameKind = 7
	frameWindow       frameKind = 8
	frameContinuation frameKind = 9
)

// Flags of frames.
const (
	flagAck        = 0x1
	flagEndStream  = 0x1
	flagEndHeaders = 0x4
	flagPadded     = 0x8
	flagPriority   = 0x20
)

// Settings by their numbers.
const (
	settingTable   = 1
	settingPush    = 2
	settingStreams = 3
	settingWindow  = 4
	settingFrame   = 5
	settingHead    = 6
)

// headerLen is the length of a frame's header.
const headerLen = 9

// frameHeader is the header of a frame.
type frameHeader struct {
	length int // of the payload
	kind   frameKind
	flags  uint8
	stream uint32
}

func (h *frameHeader) has(flag uint8) bool { return h.flags&flag != 0 }

// parseFrame reads the header of a frame from headerLen bytes.
func parseFrame(b []byte) frameHeader {
	return frameHeader{
		length: int(b[0])<<16 | int(b[1])<<8 | int(b[2]),
		kind:   frameKind(b[3]), flags: b[4], stream: binary.BigEndian.Uint32(b[5:]) & lastStream,
	}
}

// appendFrame appends the header of a frame.
func appendFrame(dst []byte, h frameHeader) []byte {
	dst = append(dst, byte(h.length>>16), byte(h.length>>8), byte(h.length), byte(h.kind), h.flags)
	return append32(dst, h.stream)
}

func append32(dst []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(dst, v) }

func appendSetting(dst []byte, id uint16, v uint32) []byte {
	return append32(binary.BigEndian.AppendUint16(dst, id), v)
}

// errorCode is why a stream or a connection ended.
type errorCode uint32

const (
	codeNone        errorCode = 0
	codeProtocol    errorCode = 1
	codeFlow        errorCode = 3
	codeSize        errorCode = 6
	codeRefused     errorCode = 7
	codeCancel      errorCode = 8
	codeCompression errorCode = 9
	codeCalm        errorCode = 11
)

// String is the code's name in RFC 9113.
func (c errorCode) String() string {
	names := [...]string{
		"NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
		"FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
		"INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
	}
	if int64(c) < int64(len(names)) {
		return names[c]
	}
	return "an unknown error"
}
