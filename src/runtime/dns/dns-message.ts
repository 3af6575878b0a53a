/** Writes responses with the compression that the library lacks (RFC 1035 §4.1.4). Responses of upstream servers are forwarded unchanged. */
import { decode, type OptAnswer, RECURSION_DESIRED } from 'dns-packet';
import type { AddressType, FoundName } from './dns-names.ts';

export type ResponseCode = 'NOERROR' | 'FORMERR' | 'SERVFAIL' | 'NXDOMAIN' | 'NOTIMP' | 'REFUSED';
const responseCodes: Readonly<Record<ResponseCode, number>> = {
  ...{ NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5 },
};

export interface DnsQuery {
  readonly message: Buffer;
  readonly name: string;
  /** The address type to look up in the table; `undefined` for another type, or a name that no table can contain. */
  readonly addressType: AddressType | undefined;
  readonly type: number;
  /** Whether the class is IN and no label contains a dot. */
  readonly isInternet: boolean;
  readonly questionEnd: number;
  readonly maxUdpBytes: number;
  readonly hasEdns: boolean;
}

/** `drop` means that the message is no query, so no client waits. */
export type ReadQuery = { kind: 'query'; query: DnsQuery } | { kind: 'failed'; response: Buffer } | { kind: 'drop' };

const headerBytes = 12;
const isResponse = 0x8000;
const opcodeBits = 0x7800;
const responseCodeBits = 0x000f;
const authoritativeFlag = 0x0400;
const truncatedFlag = 0x0200;
const recursionAvailable = 0x0080;
const classIn = 1;
const typeNumbers: Readonly<Record<AddressType, number>> = { A: 1, AAAA: 28 };
const typeCname = 5;
const typeOpt = 41;
const ttlSeconds = 30;
const minUdpBytes = 512;
/** Maximum size of a datagram, whatever size a client announces. */
const maxUdpBytes = 65_000;
/** UDP size announced to upstream servers, which needs no fragments on usual networks. */
const maxResponseUdpBytes = 1232;
/** The library allocates as many records as the header announces. A query has far fewer. */
const maxRecords = 32;
const dot = 0x2e;
/** A pointer to the name in the question, which always follows the header. */
const questionName = 0xc000 | headerBytes;

/** Never throws. */
export function readQuery(message: Buffer): ReadQuery {
  if (message.length < headerBytes) return { kind: 'drop' };
  const flags = message.readUInt16BE(2);
  // A response to a response could cause a loop.
  if ((flags & isResponse) !== 0) return { kind: 'drop' };
  const failedQuery = (code: ResponseCode): ReadQuery => ({ kind: 'failed', response: failure(message, code) });
  if ((flags & opcodeBits) !== 0) return failedQuery('NOTIMP');
  const [questions, ...counts] = [4, 6, 8, 10].map((offset) => message.readUInt16BE(offset));
  if (questions === 0) return failedQuery('SERVFAIL');
  if (questions !== 1 || counts.some((count) => count > maxRecords)) return failedQuery('FORMERR');
  try {
    const { additionals = [] } = decode(message);
    const parsedName = readName(message);
    if (parsedName === undefined) return failedQuery('FORMERR');
    const edns = additionals.find((record): record is OptAnswer => record.type === 'OPT');
    const [type, kind] = [message.readUInt16BE(parsedName.end), message.readUInt16BE(parsedName.end + 2)];
    const isSupportedQuery = kind === classIn && !parsedName.hasDots;
    return {
      kind: 'query',
      query: {
        message,
        name: parsedName.name,
        addressType: !isSupportedQuery
          ? undefined
          : type === typeNumbers.A
            ? 'A'
            : type === typeNumbers.AAAA
              ? 'AAAA'
              : undefined,
        type,
        isInternet: isSupportedQuery,
        questionEnd: parsedName.end + 4,
        maxUdpBytes: Math.min(Math.max(edns?.udpPayloadSize ?? minUdpBytes, minUdpBytes), maxUdpBytes),
        hasEdns: edns !== undefined,
      },
    };
  } catch {
    return failedQuery('FORMERR');
  }
}

/**
 * Reads byte by byte, so that a letter of another alphabet never becomes an ASCII letter in lower case. Returns `undefined` for a pointer, which has
 * no valid target in the question.
 */
function readName(message: Buffer): { name: string; end: number; hasDots: boolean } | undefined {
  let name = '';
  let hasDots = false;
  for (let offset = headerBytes; ; ) {
    const length = message[offset++]!;
    if (length === 0) return { name: name === '' ? '.' : name, end: offset, hasDots };
    if (length > 63) return undefined;
    const label = message.subarray(offset, offset + length);
    // One label `a.b` is not the two labels `a` and `b`.
    hasDots ||= label.includes(dot);
    name += `${label.toString('latin1').toLowerCase()}.`;
    offset += length;
  }
}

export function failure(message: Buffer, code: ResponseCode, questionEnd = headerBytes): Buffer {
  const response = Buffer.from(message.subarray(0, questionEnd));
  writeHeader(response, message, { flags: responseCodes[code], questions: questionEnd > headerBytes ? 1 : 0 });
  return response;
}

export function clearRecursion(response: Buffer): Buffer {
  response.writeUInt16BE(response.readUInt16BE(2) & ~recursionAvailable, 2);
  return response;
}

interface Header {
  readonly flags: number;
  readonly questions: number;
  readonly recordCount?: number;
  readonly additionals?: number;
}

function writeHeader(
  response: Buffer,
  message: Buffer,
  { flags, questions, recordCount = 0, additionals = 0 }: Header,
): void {
  const queryFlags = message.readUInt16BE(2);
  response.writeUInt16BE(isResponse | (queryFlags & (opcodeBits | RECURSION_DESIRED)) | recursionAvailable | flags, 2);
  for (const [i, count] of [questions, recordCount, 0, additionals].entries()) response.writeUInt16BE(count, 4 + 2 * i);
}

/**
 * The alias is first, then addresses of the requested type in random order. Records beyond `maxBytes` are omitted, and the response is marked as
 * truncated.
 */
export function buildResponse(query: DnsQuery, lookup: FoundName, maxBytes: number, random = Math.random): Buffer {
  const { message, questionEnd, addressType, hasEdns } = query;
  if (addressType === undefined) throw new Error('query must be of type A or AAAA');
  const { addresses } = lookup;
  // The client would query again for an alias without addresses.
  const alias = addresses[addressType].length === 0 ? undefined : lookup.alias;
  const opt = hasEdns ? optRecord : Buffer.alloc(0);
  const records: Buffer[] = [];
  let owner = questionName;
  let bytes = questionEnd + opt.length;
  if (alias !== undefined) {
    const target = wireName(alias);
    const record = Buffer.concat([recordHead(questionName, typeCname), lengthOf(target), target]);
    // Offset of the alias in the message.
    owner = 0xc000 | (questionEnd + record.length - target.length);
    records.push(record);
    bytes += record.length;
  }
  const head = recordHead(owner, typeNumbers[addressType]);
  let omittedAddresses = 0;
  for (const address of shuffleAddresses(addresses[addressType], random)) {
    if (bytes + head.length + address.length > maxBytes) omittedAddresses++;
    else {
      records.push(head, address);
      bytes += head.length + address.length;
    }
  }
  const response = Buffer.concat([message.subarray(0, questionEnd), ...records, opt]);
  const addressRecordCount = addresses[addressType].length - omittedAddresses;
  writeHeader(response, message, {
    flags: authoritativeFlag | (omittedAddresses > 0 ? truncatedFlag : 0),
    questions: 1,
    recordCount: addressRecordCount + (alias === undefined ? 0 : 1),
    additionals: hasEdns ? 1 : 0,
  });
  return response;
}

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

/** Names of the table are validated, so labels fit. */
function wireName(name: string): Buffer {
  const labels = name.slice(0, -1).split('.');
  return Buffer.concat([
    ...labels.map((label) => Buffer.from(`${String.fromCharCode(label.length)}${label}`, 'latin1')),
    Buffer.of(0),
  ]);
}

/** A query with EDNS gets a response with EDNS (RFC 6891 §6.1.1). */
const optRecord = Buffer.from([0, 0, typeOpt, maxResponseUdpBytes >> 8, maxResponseUdpBytes & 0xff, 0, 0, 0, 0, 0, 0]);

function shuffleAddresses(addresses: readonly Buffer[], random: () => number): readonly Buffer[] {
  if (addresses.length < 2) return addresses;
  const order = [...addresses];
  for (let i = order.length - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j]!, order[i]!];
  }
  return order;
}

/** The same query with another ID, which an off-path attacker cannot guess. */
export function withId(message: Buffer, id: number): Buffer {
  const copy = Buffer.from(message);
  copy.writeUInt16BE(id, 0);
  return copy;
}

/** Compares ID and question; a failure may omit the question. */
export function isResponseTo(message: Buffer, id: number, { message: query, questionEnd }: DnsQuery): boolean {
  if (message.length < headerBytes || message.readUInt16BE(0) !== id) return false;
  if ((message.readUInt16BE(2) & isResponse) === 0) return false;
  if (isBareFailure(message)) return true;
  const questionTextOf = (dnsMessage: Buffer): string =>
    dnsMessage.toString('latin1', headerBytes, questionEnd).toLowerCase();
  return (
    message.readUInt16BE(4) === 1 && message.length >= questionEnd && questionTextOf(message) === questionTextOf(query)
  );
}

/** A server that does not support EDNS or refuses this client omits the question. */
function isBareFailure(message: Buffer): boolean {
  return message.readUInt16BE(4) === 0 && (message.readUInt16BE(2) & responseCodeBits) !== 0;
}

/** Restores ID and question of the client's query, which resolvers compare. */
export function forwardedResponse(upstreamResponse: Buffer, { message, questionEnd }: DnsQuery): Buffer {
  const response = withId(upstreamResponse, message.readUInt16BE(0));
  if (!isBareFailure(response)) return response;
  const flags = response.readUInt16BE(2);
  const responseMessage = Buffer.from(message.subarray(0, questionEnd));
  responseMessage.writeUInt16BE(flags, 2);
  for (const offset of [6, 8, 10]) responseMessage.writeUInt16BE(0, offset);
  return responseMessage;
}
