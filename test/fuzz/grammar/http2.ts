/** HTTP/2 frames (RFC 9113 §4.1, §6) with gRPC messages. */
import type { Draw } from '../../random-config/draw.ts';
import { mutatedBytes, randomBytes } from './bytes.ts';

const preface = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
const frameTypes = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
};
const emptySettings = frame(frameTypes.settings, 0, 0, Buffer.alloc(0));

export function http2Bytes(draw: Draw): Buffer {
  if (draw.chance(0.05)) return randomBytes(draw, draw.int(1, 600));
  const chunks: Buffer[] = [draw.chance(0.95) ? preface : preface.subarray(0, draw.int(0, 23))];
  if (draw.chance(0.95)) chunks.push(emptySettings);
  chunks.push(draw.chance(0.15) ? flood(draw) : Buffer.concat(draw.list(1, 12, () => oddFrame(draw))));
  const bytes = Buffer.concat(chunks);
  return draw.chance(0.1) ? mutatedBytes(draw, bytes) : bytes;
}

function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array,
  declaredLength = payload.length,
): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(declaredLength & 0xffffff, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

function oddFrame(draw: Draw): Buffer {
  const type = draw.chance(0.9) ? draw.int(0, 9) : draw.int(0, 255);
  const stream = draw.pick([0, 1, 1, 3, 3, 5, 2, 0x7fffffff, 0xffffffff]);
  const payload = draw.one(
    () => grpcHeaders(draw),
    () => randomBytes(draw, draw.int(0, 60)),
    () => grpcMessage(draw, randomBytes(draw, draw.int(0, 60))),
    () => Buffer.alloc(draw.pick([0, 4, 5, 6, 8]), draw.pick([0, 0xff, 0x7f])),
  );
  const declared = draw.chance(0.9) ? payload.length : draw.pick([0, 1, 16_384, 16_385, 0xffffff]);
  return frame(type, draw.pick([0, 1, 4, 5, 5, 8, 0x20, 0xff]), stream, payload, declared);
}

/** Many equal frames, as in an attack on a server's bookkeeping. */
function flood(draw: Draw): Buffer {
  const count = draw.int(50, 3_000);
  const repeatFrames = (createFrame: (stream: number) => Buffer): Buffer =>
    Buffer.concat(Array.from({ length: count }, (_, i) => createFrame(2 * i + 1)));
  return draw.one(
    () => repeatFrames(() => frame(frameTypes.ping, 0, 0, Buffer.alloc(8))),
    () => repeatFrames(() => frame(frameTypes.settings, 0, 0, Buffer.from([0, 3, 0, 0, 0, 100]))),
    // Rapid reset: streams that are opened and reset immediately.
    () =>
      repeatFrames((stream) =>
        Buffer.concat([
          frame(frameTypes.headers, 4, stream, grpcHeaders(draw)),
          frame(frameTypes.reset, 0, stream, Buffer.from([0, 0, 0, 8])),
        ]),
      ),
    () =>
      Buffer.concat([
        frame(frameTypes.headers, 0, 1, grpcHeaders(draw)),
        repeatFrames(() => frame(frameTypes.continuation, 0, 1, Buffer.from([0x0f]))),
      ]),
    () => repeatFrames((stream) => frame(frameTypes.priority, 0, stream, Buffer.from([0, 0, 0, 0, 1]))),
    () => repeatFrames(() => frame(frameTypes.data, 0, 1, Buffer.alloc(0))),
  );
}

const adsPaths = [
  '/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources',
  '/envoy.service.discovery.v3.AggregatedDiscoveryService/DeltaAggregatedResources',
  '/envoy.service.discovery.v2.AggregatedDiscoveryService/StreamAggregatedResources',
  '/grpc.health.v1.Health/Check',
  '/',
  '',
  '/x',
  '/__proto__/constructor',
];

/** An HPACK block of literals without indexing (RFC 7541 §6.2.2), which needs no table. */
function grpcHeaders(draw: Draw): Buffer {
  const headers: [string, string][] = [
    [':method', draw.chance(0.9) ? 'POST' : draw.pick(['GET', '', 'CONNECT'])],
    [':scheme', draw.chance(0.95) ? 'http' : ''],
    [':path', draw.chance(0.8) ? draw.pick(adsPaths.slice(0, 2)) : draw.pick(adsPaths)],
    [':authority', 'a'],
    ['content-type', draw.chance(0.9) ? 'application/grpc' : draw.pick(['text/plain', '', 'application/grpc+json'])],
    ['te', 'trailers'],
  ];
  if (draw.chance(0.2)) headers.push(['grpc-timeout', draw.pick(['1n', '0m', '-1S', '99999999H', 'x', ''])]);
  if (draw.chance(0.2)) headers.push(['grpc-encoding', draw.pick(['gzip', 'deflate', 'identity', 'x', '__proto__'])]);
  if (draw.chance(0.2))
    headers.push([
      draw.pick(['__proto__', 'x-bin', 'UPPER', ':late', 'authorization', 'clusterid']),
      draw.pick(['', '!!!', 'Bearer x', 'a'.repeat(500)]),
    ]);
  if (draw.chance(0.1)) headers.splice(draw.int(0, 5), 1);
  return Buffer.concat(
    headers.map(([name, value]) => Buffer.concat([Buffer.from([0]), hpackText(name), hpackText(value)])),
  );
}

function hpackText(text: string): Buffer {
  const bytes = Buffer.from(text, 'latin1');
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  const length: number[] = [127];
  let remainder = bytes.length - 127;
  for (; remainder >= 128; remainder >>= 7) length.push((remainder & 127) | 128);
  return Buffer.concat([Buffer.from([...length, remainder]), bytes]);
}

/** gRPC's length-prefixed message, whose length and compression flag may be wrong. */
function grpcMessage(draw: Draw, bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head[0] = draw.chance(0.9) ? 0 : draw.pick([1, 2, 255]);
  head.writeUInt32BE(draw.chance(0.9) ? bytes.length : draw.pick([0, 1, 0x7fffffff, 0xffffffff, bytes.length + 1]), 1);
  return Buffer.concat([head, bytes]);
}
