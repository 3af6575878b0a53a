/**
 * Encodes spans as OTLP JSON without the SDK, which sets its own times and IDs: these times are recorded, and the IDs must be equal in each export.
 */
import { createHash } from 'node:crypto';
import type { TraceHeader } from '../../runtime/trace/trace.ts';
import type { AttributeValue, OtlpSpan } from './span.ts';

const internalSpanKind = 1;
const statusError = 2;
const spansOfARequest = 256;

export function otlpRequests(header: TraceHeader, spans: readonly OtlpSpan[], version: string): object[] {
  const requests: object[] = [];
  for (let offset = 0; offset < spans.length; offset += spansOfARequest) {
    requests.push({
      resourceSpans: [
        {
          resource: { attributes: attributesOf(resourceOf(header)) },
          scopeSpans: [
            {
              scope: { name: 'chartpilot', version },
              spans: spans.slice(offset, offset + spansOfARequest).map((span) => spanOf(header, span)),
            },
          ],
        },
      ],
    });
  }
  return requests;
}

/** These names are OpenTelemetry's conventions. */
function resourceOf({ program, pid, startedAt }: TraceHeader): Record<string, AttributeValue> {
  return { 'service.name': program, 'service.instance.id': idOf(32, program, pid, startedAt), 'process.pid': pid };
}

function spanOf(header: TraceHeader, { trace, key, parent, name, from, to, attributes, error }: OtlpSpan): object {
  const { program, pid, startedAt } = header;
  const run = [program, pid, startedAt, trace] as const;
  return {
    traceId: idOf(32, ...run),
    spanId: idOf(16, ...run, 'span', key),
    ...(parent !== undefined && { parentSpanId: idOf(16, ...run, 'span', parent) }),
    name,
    kind: internalSpanKind,
    startTimeUnixNano: toNanoseconds(startedAt, from),
    endTimeUnixNano: toNanoseconds(startedAt, to),
    attributes: attributesOf({ ...attributes, ...(error !== undefined && { 'error.type': 'chartpilot.failure' }) }),
    ...(error !== undefined && {
      events: [
        {
          name: 'exception',
          timeUnixNano: toNanoseconds(startedAt, to),
          attributes: attributesOf({ 'exception.type': 'chartpilot.failure', 'exception.message': error }),
        },
      ],
    }),
    status: error === undefined ? {} : { code: statusError, message: error },
  };
}

/** Spans that are exported twice have the same ID. */
function idOf(digits: number, ...keyParts: readonly (string | number)[]): string {
  return createHash('sha256').update(JSON.stringify(keyParts)).digest('hex').slice(0, digits);
}

/** JSON encodes 64-bit numbers as strings. */
function toNanoseconds(startedAt: string, t: number): string {
  const start = Date.parse(startedAt);
  return String(BigInt(Number.isNaN(start) ? 0 : start) * 1_000_000n + BigInt(Math.round(t * 1_000)) * 1_000n);
}

function attributesOf(attributes: Readonly<Record<string, AttributeValue>>): object[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: valueOf(value) }));
}

function valueOf(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isSafeInteger(value)
    ? { intValue: String(value) }
    : { doubleValue: Number.isFinite(value) ? value : 0 };
}
