import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ClusterSchema } from '../../../gen/envoy/config/cluster/v3/cluster_pb.ts';
import { Encodable, type PartToEncode } from '../../../networking/messages/resource.ts';
import { AheadBuild } from './ahead-build.ts';

/**
 * Number of parts in each piece.
 * @param msOfPart build time of a part
 */
function partsByPiece(partList: readonly (PartToEncode | undefined)[], msOfPart = 0): number[] {
  let requestedParts = 0;
  const countedParts = (function* () {
    for (const nextPart of partList) {
      requestedParts++;
      yield nextPart;
    }
  })();
  const now = (): number => requestedParts * msOfPart;
  const build = new AheadBuild(countedParts, () => {}, now);
  const pieceSizes: number[] = [];
  for (let hasMore = true; hasMore; ) {
    const previous = requestedParts;
    hasMore = build.buildPiece();
    pieceSizes.push(requestedParts - previous);
  }
  return pieceSizes;
}

const encodablePart = new Encodable(ClusterSchema, create(ClusterSchema));

it('AheadBuild builds a limited number of parts per piece', () => {
  expect(partsByPiece(Array.from({ length: 20 }, () => encodablePart))).toEqual([8, 8, 4]);
});

it('AheadBuild ends a piece when the source pauses, because the preceding work can be slow', () => {
  expect(partsByPiece([undefined, undefined, encodablePart, encodablePart, undefined, encodablePart])).toEqual([
    1, 1, 3, 1,
  ]);
});

it('AheadBuild builds fewer parts per piece if a part is slow', () => {
  expect(partsByPiece([encodablePart, encodablePart, encodablePart], 3)).toEqual([1, 1, 1, 0]);
  expect(partsByPiece([encodablePart, encodablePart, encodablePart, encodablePart], 1)).toEqual([3, 1]);
});
