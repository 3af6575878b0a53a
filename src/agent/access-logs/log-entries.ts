/** Decodes the fields of Envoy's access log entries that metrics need (envoy.service.accesslog.v3, envoy.data.accesslog.v3). */
import { entryTags, maxExpressions, peerStateKey } from '../../model/standard-metrics/stream-rules.ts';
import { WireCursor } from './wire-cursor.ts';

/** Values of `access_log_type` that metrics distinguish. */
export const logTypes = { tcpUpstreamConnected: 1, tcpPeriodic: 2, downstreamStart: 4, downstreamPeriodic: 5 } as const;

export interface AccessLogEntry {
  readonly protocol: 'http' | 'tcp';
  type: number;
  streamId: string;
  /** Milliseconds since 1970; 0 if unknown. */
  startMs: number;
  durationMs: number;
  /** Bytes from and to the client; for TCP, since the connection was opened. */
  received: number;
  sent: number;
  cluster: string;
  route: string;
  flags: string;
  code: number;
  contentType: string;
  grpcStatus: string;
  /** SPIFFE ID of the client's certificate; empty without one. */
  peerUri: string;
  localUri: string;
  /** Unverified labels of the client (`peer-claim.ts`). */
  claim: string;
  workload: string;
  services: string;
  upstreamPeer: string;
  upstreamLocal: string;
  values: string[];
}

export interface LogMessage {
  readonly logName: string | undefined;
  readonly entries: readonly AccessLogEntry[];
}

const tag = (field: number, wireType: 0 | 2): number => field * 8 + wireType;

export function readLogMessage(bytes: Buffer): LogMessage {
  const cursor = new WireCursor(bytes);
  const entries: AccessLogEntry[] = [];
  let logName: string | undefined;
  const readIdentifier = (): void => {
    const field = cursor.tag();
    if (field === tag(2, 2)) logName = cursor.text();
    else cursor.skip(field);
  };
  const readEntries = (protocol: AccessLogEntry['protocol']) => (): void => {
    const field = cursor.tag();
    if (field === tag(1, 2)) entries.push(readEntry(cursor, protocol));
    else cursor.skip(field);
  };
  while (!cursor.isAtEnd) {
    const field = cursor.tag();
    if (field === tag(1, 2)) {
      logName ??= '';
      cursor.readMessage(readIdentifier);
    } else if (field === tag(2, 2)) cursor.readMessage(readEntries('http'));
    else if (field === tag(3, 2)) cursor.readMessage(readEntries('tcp'));
    else cursor.skip(field);
  }
  return { logName, entries };
}

function emptyEntry(protocol: AccessLogEntry['protocol']): AccessLogEntry {
  return {
    protocol,
    type: 0,
    streamId: '',
    startMs: 0,
    durationMs: 0,
    received: 0,
    sent: 0,
    cluster: '',
    route: '',
    flags: '-',
    code: 0,
    contentType: '',
    grpcStatus: '',
    peerUri: '',
    localUri: '',
    claim: '',
    workload: '',
    services: '',
    upstreamPeer: '',
    upstreamLocal: '',
    values: emptyValues,
  };
}

const emptyValues: string[] = [];

function readEntry(cursor: WireCursor, protocol: AccessLogEntry['protocol']): AccessLogEntry {
  const entry = emptyEntry(protocol);
  cursor.readMessage(() => {
    const field = cursor.tag();
    if (field === tag(1, 2)) cursor.readMessage(() => readCommon(cursor, entry));
    else if (protocol === 'tcp' && field === tag(2, 2)) cursor.readMessage(() => readConnection(cursor, entry));
    else if (protocol === 'http' && field === tag(3, 2)) cursor.readMessage(() => readRequest(cursor, entry));
    else if (protocol === 'http' && field === tag(4, 2)) cursor.readMessage(() => readResponse(cursor, entry));
    else cursor.skip(field);
  });
  return entry;
}

function readCommon(cursor: WireCursor, entry: AccessLogEntry): void {
  const field = cursor.tag();
  switch (field) {
    case tag(4, 2):
      cursor.readMessage(() => readTls(cursor, entry));
      return;
    case tag(5, 2):
      entry.startMs = readTime(cursor);
      return;
    case tag(15, 2):
      entry.cluster = cursor.text();
      return;
    case tag(16, 2):
      entry.flags = readFlags(cursor);
      return;
    case tag(19, 2):
      entry.route = cursor.text();
      return;
    case tag(21, 2):
      readFilterState(cursor, entry);
      return;
    case tag(22, 2):
      readCustomTag(cursor, entry);
      return;
    case tag(23, 2):
      entry.durationMs = readTime(cursor);
      return;
    case tag(26, 2):
      entry.streamId = cursor.text();
      return;
    case tag(29, 0):
      if (entry.protocol === 'http') entry.sent = cursor.varint();
      else cursor.skip(field);
      return;
    case tag(30, 0):
      if (entry.protocol === 'http') entry.received = cursor.varint();
      else cursor.skip(field);
      return;
    case tag(33, 0):
      entry.type = cursor.varint();
      return;
    default:
      cursor.skip(field);
  }
}

/** `TLSProperties`: the first SPIFFE ID of each certificate. */
function readTls(cursor: WireCursor, entry: AccessLogEntry): void {
  const field = cursor.tag();
  if (field === tag(4, 2)) entry.localUri = readCertificate(cursor);
  else if (field === tag(5, 2)) entry.peerUri = readCertificate(cursor);
  else cursor.skip(field);
}

function readCertificate(cursor: WireCursor): string {
  let spiffeUri = '';
  const readName = (): void => {
    const field = cursor.tag();
    if (field === tag(1, 2)) {
      const uri = cursor.text();
      if (spiffeUri === '' && uri.startsWith('spiffe://')) spiffeUri = uri;
    } else cursor.skip(field);
  };
  cursor.readMessage(() => {
    const field = cursor.tag();
    if (field === tag(1, 2)) cursor.readMessage(readName);
    else cursor.skip(field);
  });
  return spiffeUri;
}

/** `Timestamp` or `Duration`, in milliseconds. */
function readTime(cursor: WireCursor): number {
  let ms = 0;
  cursor.readMessage(() => {
    const field = cursor.tag();
    if (field === tag(1, 0)) ms += cursor.varint() * 1e3;
    else if (field === tag(2, 0)) ms += cursor.varint() / 1e6;
    else cursor.skip(field);
  });
  return ms;
}

/** Envoy's short names of response flags in Envoy's output order, by field number. */
export const flagNames: Readonly<Record<number, string>> = {
  1: 'LH',
  2: 'UH',
  3: 'UT',
  4: 'LR',
  5: 'UR',
  6: 'UF',
  7: 'UC',
  8: 'UO',
  9: 'NR',
  10: 'DI',
  11: 'FI',
  12: 'RL',
  13: 'UAEX',
  14: 'RLSE',
  15: 'DC',
  16: 'URX',
  17: 'SI',
  18: 'IH',
  19: 'DPE',
  20: 'UMSDR',
  21: 'RFCF',
  22: 'NFCF',
  23: 'DT',
  24: 'UPE',
  25: 'NC',
  26: 'OM',
  27: 'DF',
  28: 'DR',
};

function readFlags(cursor: WireCursor): string {
  let flags = '';
  cursor.readMessage(() => {
    const field = cursor.tag();
    const name = flagNames[field >>> 3];
    if (name !== undefined) flags = flags === '' ? name : `${flags},${name}`;
    cursor.skip(field);
  });
  return flags === '' ? '-' : flags;
}

function readPair(cursor: WireCursor, readValue: (key: string) => void): void {
  let key = '';
  cursor.readMessage(() => {
    const field = cursor.tag();
    if (field === tag(1, 2)) key = cursor.text();
    else if (field === tag(2, 2)) readValue(key);
    else cursor.skip(field);
  });
}

/** Reads the peer's claim: a `google.protobuf.StringValue` in `google.protobuf.Any`. Its text is in field 1 or 2. */
function readFilterState(cursor: WireCursor, entry: AccessLogEntry): void {
  const readText = (): void => {
    const field = cursor.tag();
    if (field === tag(1, 2)) entry.claim = cursor.text();
    else cursor.skip(field);
  };
  const readAny = (): void => {
    const field = cursor.tag();
    if (field === tag(2, 2)) cursor.readMessage(readText);
    else cursor.skip(field);
  };
  readPair(cursor, (key) => {
    if (key === peerStateKey) cursor.readMessage(readAny);
    else cursor.text();
  });
}

function readCustomTag(cursor: WireCursor, entry: AccessLogEntry): void {
  readPair(cursor, (key) => {
    const value = cursor.text();
    if (key === entryTags.workload) entry.workload = value;
    else if (key === entryTags.services) entry.services = value;
    else if (key === entryTags.upstreamPeer) entry.upstreamPeer = value;
    else if (key === entryTags.upstreamLocal) entry.upstreamLocal = value;
    else if (/^t\d{1,2}$/.test(key) && Number(key.slice(1)) < maxExpressions) {
      if (entry.values === emptyValues) entry.values = [];
      entry.values[Number(key.slice(1))] = value;
    }
  });
}

function readConnection(cursor: WireCursor, entry: AccessLogEntry): void {
  const field = cursor.tag();
  if (field === tag(1, 0)) entry.received = cursor.varint();
  else if (field === tag(2, 0)) entry.sent = cursor.varint();
  else cursor.skip(field);
}

function readRequest(cursor: WireCursor, entry: AccessLogEntry): void {
  const field = cursor.tag();
  if (field !== tag(13, 2)) {
    cursor.skip(field);
    return;
  }
  readPair(cursor, (key) => {
    const value = cursor.text();
    if (key === 'content-type') entry.contentType = value;
  });
}

/** A response without body has the gRPC status in its headers. */
function readResponse(cursor: WireCursor, entry: AccessLogEntry): void {
  const field = cursor.tag();
  if (field === tag(1, 2)) {
    cursor.readMessage(() => {
      const innerField = cursor.tag();
      if (innerField === tag(1, 0)) entry.code = cursor.varint();
      else cursor.skip(innerField);
    });
  } else if (field === tag(4, 2) || field === tag(5, 2)) {
    readPair(cursor, (key) => {
      const value = cursor.text();
      if (key === 'grpc-status') entry.grpcStatus = value;
    });
  } else cursor.skip(field);
}
