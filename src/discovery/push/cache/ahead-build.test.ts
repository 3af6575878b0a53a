import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ClusterSchema } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { Encodable, type PartToEncode } from '../../../networking/messages/resource.ts';
import { AheadBuild } from './ahead-build.ts';

/**
 * Number of parts in each piece.
 * @param msOfPart build time of a part
 */
function partsByPiece(parts: readonly (PartToEncode | undefined)[], msOfPart = 0): number[] {
  let requestedParts = 0;
  const counted = (function* () {
    for (const part of parts) {
      requestedParts++;
      yield part;
    }
  })();
  const now = (): number => requestedParts * msOfPart;
  const build = new AheadBuild(counted, () => {}, now);
  const pieces: number[] = [];
  for (let more = true; more; ) {
    const previous = requestedParts;
    more = build.buildPiece();
    pieces.push(requestedParts - previous);
  }
  return pieces;
}

const part = new Encodable(ClusterSchema, create(ClusterSchema));

it('AheadBuild builds a limited number of parts per piece', () => {
  expect(partsByPiece(Array.from({ length: 20 }, () => part))).toEqual([8, 8, 4]);
});

it('AheadBuild ends a piece when the source pauses, because the preceding work can be slow', () => {
  expect(partsByPiece([undefined, undefined, part, part, undefined, part])).toEqual([1, 1, 3, 1]);
});

it('AheadBuild builds fewer parts per piece if a part is slow', () => {
  expect(partsByPiece([part, part, part], 3)).toEqual([1, 1, 1, 0]);
  expect(partsByPiece([part, part, part, part], 1)).toEqual([3, 1]);
});
