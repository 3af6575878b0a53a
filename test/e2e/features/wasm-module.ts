/** A minimal hand-assembled Wasm module (proxy ABI 0.2.1) that responds to every request. */

const i32 = 0x7f;

function bytes(text: string): number[] {
  return [...Buffer.from(text)];
}

/** Unsigned LEB128. */
function number(value: number): number[] {
  const lowBits = value & 0x7f;
  return value > 0x7f ? [lowBits | 0x80, ...number(value >>> 7)] : [lowBits];
}

/** Signed LEB128. */
function constant(value: number): number[] {
  const lowBits = value & 0x7f;
  const highBits = value >> 7;
  const isLast = (highBits === 0 && (lowBits & 0x40) === 0) || (highBits === -1 && (lowBits & 0x40) !== 0);
  return isLast ? [0x41, lowBits] : [0x41, lowBits | 0x80, ...constant(highBits).slice(1)];
}

function sized(content: readonly number[]): number[] {
  return [...number(content.length), ...content];
}

function list(items: readonly (readonly number[])[]): number[] {
  return [...number(items.length), ...items.flat()];
}

function section(id: number, content: readonly number[]): number[] {
  return [id, ...sized(content)];
}

function type(parameters: number, results: number): number[] {
  return [0x60, ...list(Array(parameters).fill([i32])), ...list(Array(results).fill([i32]))];
}

/** A module that responds with this status. */
export function respondingModule(status: number): Buffer {
  const types = [type(0, 0), type(1, 1), type(2, 0), type(2, 1), type(3, 1), type(8, 1)];
  const name = (text: string): number[] => sized(bytes(text));
  const imports = [[...name('env'), ...name('proxy_send_local_response'), 0x00, 5]];
  // No details, no body, no headers, no gRPC status; then processing of the request stops.
  const sendResponse = [
    ...constant(status),
    ...[0, 0, 0, 0, 0, 0].flatMap(constant),
    ...constant(-1),
    0x10,
    0,
    0x1a,
    ...constant(1),
  ];
  const functions: readonly [string, number, readonly number[]][] = [
    ['proxy_abi_version_0_2_1', 0, []],
    ['proxy_on_memory_allocate', 1, constant(1024)],
    ['proxy_on_context_create', 2, []],
    ['proxy_on_vm_start', 3, constant(1)],
    ['proxy_on_configure', 3, constant(1)],
    ['proxy_on_request_headers', 4, sendResponse],
  ];
  return Buffer.from([
    ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
    ...section(1, list(types)),
    ...section(2, list(imports)),
    ...section(3, list(functions.map(([, of]) => [of]))),
    ...section(5, list([[0x00, 2]])),
    ...section(
      7,
      list([...functions.map(([text], index) => [...name(text), 0x00, index + 1]), [...name('memory'), 0x02, 0]]),
    ),
    ...section(10, list(functions.map(([, , code]) => sized([0, ...code, 0x0b])))),
  ]);
}
