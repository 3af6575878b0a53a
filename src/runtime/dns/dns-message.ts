/**
 * DNS messages: questions are parsed by the library; answers of our own are written here, with the compression that the
 * library lacks (RFC 1035 §4.1.4); those of others are passed on as they are.
 */
import { decode, type OptAnswer, RECURSION_DESIRED } from 'dns-packet';
import type { AddressType, FoundName } from './dns-names.ts';

export type ResponseCode = 'NOERROR' | 'FORMERR' | 'SERVFAIL' | 'NXDOMAIN' | 'NOTIMP' | 'REFUSED';
const responseCodes: Readonly<Record<ResponseCode, number>> = {
  ...{ NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 },
};

export interface Query {
  /** The bytes as they came. */
  readonly message: Buffer;
  /** The name in lower case, with a dot at the end. */
  readonly name: string;
  /** The address type that the table is asked for; undefined: another one, or a name that no table has. */
  readonly asksFor: AddressType | undefined;
  /** Type of the records that are requested. */
  readonly type: number;
  /** Class IN, and each label of the name is one. */
  readonly isInternet: boolean;
  /** Where the one question ends. */
  readonly questionEnd: number;
  /** How long an answer over UDP may be. */
  readonly mostUdpBytes: number;
  readonly hasEdns: boolean;
}

/** `drop`: no question, so nobody waits; `failed`: answered with this. */
export type ReadQuery = { kind: 'query'; query: Query } | { kind: 'failed'; response: Buffer } | { kind: 'drop' };

const headerBytes = 12;
const isResponse = 0x8000;
const opcodeBits = 0x7800;
const responseCodeBits = 0x000f;
const authoritative = 0x0400;
const truncated = 0x0200;
const recursionAvailable = 0x0080;
const classIn = 1;
const typeNumbers: Readonly<Record<AddressType, number>> = { A: 1, AAAA: 28 };
const typeCname = 5;
const typeOpt = 41;
const ttlSeconds = 30;
const leastUdpBytes = 512;
/** No datagram is larger, whatever somebody says that they take. */
const mostUdpBytes = 65_000;
/** What we take of others over UDP, without fragments on any usual network. */
const ownUdpBytes = 1232;
/** A message with more records than this is no question: the library makes room for as many as the header says. */
const mostRecords = 32;
const dot = 0x2e;
/** A pointer to the name in the question, where the first name of a message always stands. */
const askedName = 0xc000 | headerBytes;

/** Never throws. */
export function readQuery(message: Buffer): ReadQuery {
  if (message.length < headerBytes) return { kind: 'drop' };
  const flags = message.readUInt16BE(2);
  // An answer to an answer may go on for ever.
  if ((flags & isResponse) !== 0) return { kind: 'drop' };
  const failed = (code: ResponseCode): ReadQuery => ({ kind: 'failed', response: failure(message, code) });
  if ((flags & opcodeBits) !== 0) return failed('NOTIMP');
  const [questions, ...others] = [4, 6, 8, 10].map((offset) => message.readUInt16BE(offset));
  if (questions === 0) return failed('SERVFAIL');
  if (questions !== 1 || others.some((count) => count > mostRecords)) return failed('FORMERR');
  try {
    const { additionals = [] } = decode(message);
    const asked = readName(message);
    if (asked === undefined) return failed('FORMERR');
    const edns = additionals.find((record): record is OptAnswer => record.type === 'OPT');
    const [type, kind] = [message.readUInt16BE(asked.end), message.readUInt16BE(asked.end + 2)];
    const isOurs = kind === classIn && !asked.hasDots;
    return {
      kind: 'query',
      query: {
        message,
        name: asked.name,
        asksFor: !isOurs ? undefined : type === typeNumbers.A ? 'A' : type === typeNumbers.AAAA ? 'AAAA' : undefined,
        type,
        isInternet: isOurs,
        questionEnd: asked.end + 4,
        mostUdpBytes: Math.min(Math.max(edns?.udpPayloadSize ?? leastUdpBytes, leastUdpBytes), mostUdpBytes),
        hasEdns: edns !== undefined,
      },
    };
  } catch {
    return failed('FORMERR');
  }
}

/**
 * The name in the question, byte by byte: a letter of another alphabet is never one of ours in lower case. Undefined: it
 * points elsewhere, and there is nowhere to point to.
 */
function readName(message: Buffer): { name: string; end: number; hasDots: boolean } | undefined {
  let name = '';
  let hasDots = false;
  for (let at = headerBytes; ; ) {
    const length = message[at++]!;
    if (length === 0) return { name: name === '' ? '.' : name, end: at, hasDots };
    if (length > 63) return undefined;
    const label = message.subarray(at, at + length);
    // One label `a.b` is not the two labels `a` and `b`.
    hasDots ||= label.includes(dot);
    name += `${label.toString('latin1').toLowerCase()}.`;
    at += length;
  }
}

/** An answer without records, to whatever was asked: the question comes back where it can be read. */
export function failure(message: Buffer, code: ResponseCode, questionEnd = headerBytes): Buffer {
  const response = Buffer.from(message.subarray(0, questionEnd));
  writeHeader(response, message, { flags: responseCodes[code], questions: questionEnd > headerBytes ? 1 : 0 });
  return response;
}

/** The response of a server that asks no others: in place, without the flag that recursion is available. */
export function withoutRecursion(response: Buffer): Buffer {
  response.writeUInt16BE(response.readUInt16BE(2) & ~recursionAvailable, 2);
  return response;
}

interface Header {
  readonly flags: number;
  readonly questions: number;
  readonly answers?: number;
  readonly additionals?: number;
}

function writeHeader(
  response: Buffer,
  message: Buffer,
  { flags, questions, answers = 0, additionals = 0 }: Header,
): void {
  const asked = message.readUInt16BE(2);
  response.writeUInt16BE(isResponse | (asked & (opcodeBits | RECURSION_DESIRED)) | recursionAvailable | flags, 2);
  for (const [i, count] of [questions, answers, 0, additionals].entries()) response.writeUInt16BE(count, 4 + 2 * i);
}

/**
 * The answer of the table: the alias first, then the addresses of the type that was asked for, in an order of their own each
 * time; neither where the name has only others. What has no room within `mostBytes` is left out, and the answer says so.
 */
export function answer(query: Query, found: FoundName, mostBytes: number, random = Math.random): Buffer {
  const { message, questionEnd, asksFor, hasEdns } = query;
  if (asksFor === undefined) throw new Error('query must be of type A or AAAA');
  const { addresses } = found;
  // An alias of nothing would be asked for again.
  const alias = addresses[asksFor].length === 0 ? undefined : found.alias;
  const opt = hasEdns ? optRecord : Buffer.alloc(0);
  const records: Buffer[] = [];
  let owner = askedName;
  let bytes = questionEnd + opt.length;
  if (alias !== undefined) {
    const target = wireName(alias);
    const record = Buffer.concat([recordHead(askedName, typeCname), lengthOf(target), target]);
    // Where the alias stands in the message.
    owner = 0xc000 | (questionEnd + record.length - target.length);
    records.push(record);
    bytes += record.length;
  }
  const head = recordHead(owner, typeNumbers[asksFor]);
  let left = 0;
  for (const address of shuffled(addresses[asksFor], random)) {
    if (bytes + head.length + address.length > mostBytes) left++;
    else {
      records.push(head, address);
      bytes += head.length + address.length;
    }
  }
  const response = Buffer.concat([message.subarray(0, questionEnd), ...records, opt]);
  const written = addresses[asksFor].length - left;
  writeHeader(response, message, {
    flags: authoritative | (left > 0 ? truncated : 0),
    questions: 1,
    answers: written + (alias === undefined ? 0 : 1),
    additionals: hasEdns ? 1 : 0,
  });
  return response;
}

/** Name, type, class and time to live. */
function recordHead(pointer: number, type: number): Buffer {
  const head = Buffer.alloc(10);
  head.writeUInt16BE(pointer, 0);
  head.writeUInt16BE(type, 2);
  head.writeUInt16BE(classIn, 4);
  head.writeUInt32BE(ttlSeconds, 6);
  return head;
}

function lengthOf(data: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(data.length);
  return length;
}

/** Names of the table have been looked at: labels fit. */
function wireName(name: string): Buffer {
  const labels = name.slice(0, -1).split('.');
  return Buffer.concat([
    ...labels.map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, 'latin1')),
    Buffer.of(0),
  ]);
}

/** Who asks with EDNS is told that it is known here (RFC 6891 §6.1.1). */
const optRecord = Buffer.from([0, 0, typeOpt, ownUdpBytes >> 8, ownUdpBytes & 0xff, 0, 0, 0, 0, 0, 0]);

function shuffled(addresses: readonly Buffer[], random: () => number): readonly Buffer[] {
  if (addresses.length < 2) return addresses;
  const order = [...addresses];
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}

/** The same question with another id: whoever does not see it cannot guess what the answer must have. */
export function withId(message: Buffer, id: number): Buffer {
  const copy = Buffer.from(message);
  copy.writeUInt16BE(id, 0);
  return copy;
}

/** Whether a message answers this question: by its id, and by the question that it repeats; a failure may leave that out. */
export function answers(message: Buffer, id: number, { message: asked, questionEnd }: Query): boolean {
  if (message.length < headerBytes || message.readUInt16BE(0) !== id) return false;
  if ((message.readUInt16BE(2) & isResponse) === 0) return false;
  if (isBareFailure(message)) return true;
  const question = (one: Buffer): string => one.toString('latin1', headerBytes, questionEnd).toLowerCase();
  return message.readUInt16BE(4) === 1 && message.length >= questionEnd && question(message) === question(asked);
}

/** As of a server that does not know EDNS, or answers nobody from here: it does not say what it was asked. */
function isBareFailure(message: Buffer): boolean {
  return message.readUInt16BE(4) === 0 && (message.readUInt16BE(2) & responseCodeBits) !== 0;
}

/** What another one has answered, for who has asked: with its id, and with the question, by which resolvers know it. */
export function passedOn(found: Buffer, { message, questionEnd }: Query): Buffer {
  const response = withId(found, message.readUInt16BE(0));
  if (!isBareFailure(response)) return response;
  const flags = response.readUInt16BE(2);
  const whole = Buffer.from(message.subarray(0, questionEnd));
  whole.writeUInt16BE(flags, 2);
  for (const offset of [6, 8, 10]) whole.writeUInt16BE(0, offset);
  return whole;
}
