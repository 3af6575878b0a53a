/** Go's linker does not set the memory limit of a module (core specification 5.5.8). */

interface WebAssemblyMemory {
  readonly buffer: ArrayBuffer;
  grow(pages: number): number;
}

/** Node's types contain only the module. */
interface WebAssemblyGlobal {
  compile(bytes: Uint8Array): Promise<WebAssembly.Module>;
  instantiate(module: WebAssembly.Module, imports: object): Promise<{ readonly exports: WebAssemblyExports }>;
}

export interface WebAssemblyExports {
  readonly memory: WebAssemblyMemory;
  readonly reserve: (size: number) => number;
  readonly render: () => bigint;
}

export const { compile, instantiate } = (globalThis as unknown as { readonly WebAssembly: WebAssemblyGlobal })
  .WebAssembly;

/** The bytes `\0asm`. */
const magicBytes = [0, 0x61, 0x73, 0x6d];
const memorySection = 5;
const pagesOfMebibyte = 16;

/**
 * Growing beyond the limit fails within the module.
 *
 * @throws Error if the module does not have exactly one memory without a maximum, or starts with more
 */
export function withMemoryLimit(module: Uint8Array, maxMebibytes: number): Uint8Array<ArrayBuffer> {
  if (!magicBytes.every((byte, index) => module[index] === byte)) throw new Error('is not WebAssembly');
  let offset = 8;
  while (offset < module.length) {
    const start = offset;
    const id = module[offset++];
    const size = numberAt(module, offset);
    const content = size.end;
    const contentEnd = content + size.value;
    if (id === memorySection) {
      const count = numberAt(module, content);
      const flags = numberAt(module, count.end);
      const minPages = numberAt(module, flags.end);
      const maxPages = maxMebibytes * pagesOfMebibyte;
      if (count.value !== 1 || flags.value !== 0 || minPages.end !== contentEnd)
        throw new Error('must have one memory without a maximum');
      if (minPages.value > maxPages) throw new Error(`needs ${minPages.value / pagesOfMebibyte} MiB of memory`);
      const limits = [...encodeVarint(1), 1, ...encodeVarint(minPages.value), ...encodeVarint(maxPages)];
      const section = [memorySection, ...encodeVarint(limits.length), ...limits];
      const result = new Uint8Array(module.length + section.length - (contentEnd - start));
      result.set(module.subarray(0, start));
      result.set(section, start);
      result.set(module.subarray(contentEnd), start + section.length);
      return result;
    }
    offset = contentEnd;
  }
  throw new Error('has no memory');
}

/** Decodes an unsigned LEB128 number. */
function numberAt(bytes: Uint8Array, start: number): { readonly value: number; readonly end: number } {
  let value = 0;
  for (let byteIndex = start, shift = 0; shift < 35; byteIndex++, shift += 7) {
    const byte = bytes[byteIndex];
    if (byte === undefined) break;
    value += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) return { value, end: byteIndex + 1 };
  }
  throw new Error('is not WebAssembly');
}

function encodeVarint(value: number): number[] {
  const bytes: number[] = [];
  for (let remainingBits = value; ; remainingBits = Math.floor(remainingBits / 128)) {
    if (remainingBits < 128) return [...bytes, remainingBits];
    bytes.push((remainingBits % 128) + 128);
  }
}
