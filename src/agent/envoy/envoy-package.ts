import { ChartpilotError } from '../../runtime/errors.ts';

/** SHA-256, in hexadecimal, of the archive that pip may install, and of the binary in it. */
export interface EnvoyDigests {
  readonly archive: string;
  readonly binary: string;
}

/** The keys are the version, then platform and CPU in Node's names. */
const digestsByVersion: Readonly<Record<string, Readonly<Record<string, EnvoyDigests>>>> = {
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
  // For tests of the oldest supported version.
  '1.36.2': {
    'linux-x64': {
      archive: 'c75488ad0be907f077883691aa3832a79b509c1f6c993b420683e90793e13efc',
      binary: 'afd67bcfea548525ee76a9350a0a4cfeb2ac24c7b532794ce332d840ad8cdae7',
    },
    'linux-arm64': {
      archive: '9e5048686ebee6999b021eefe313444e4c2280ac48c4ae23c61a13612e407225',
      binary: 'af736bb6653cce9c52b2f3b092a3602ac21a60ac675698d060dc4d82837c05ca',
    },
    'darwin-arm64': {
      archive: '9ad57f6efc11867de45ba677ab6e2940f672222cefb675ebdb0c2d3d48919f2b',
      binary: 'b1f69928747e65c2c6ef9dd98216e219461cb8b2543da2cf7f88b70d4bea1cec',
    },
  },
  // For tests of a build without V8.
  '1.38.3': {
    'linux-x64': {
      archive: '4a8fa981eac59809147c0ca4fc17ad5b066c16c2499e75d992fe5129e07a34fa',
      binary: 'a9a8a174b50ec2606dc6f73b31f7602e0de2a73dbc090141c31460f5613d179d',
    },
    'linux-arm64': {
      archive: 'f94e4feef98323f4f56aff8859d8d108df59b38cc92f63043f8cb182ab0dcd42',
      binary: 'da1d24686a680e9e3228f97496e947d940e510a5d6d271548b2ab26a8a69e793',
    },
    'darwin-arm64': {
      archive: 'b88faee9b672f65b9d11fb5842d8fc3b8b3b0ae66cfae2a264e21f0906c58eb6',
      binary: '87d3346dee87289eb1ed783dafabbfd2ff06575b3f970e2313bd412e09fb7c68',
    },
  },
};

export function digestsOf(version: string, platform = `${process.platform}-${process.arch}`): EnvoyDigests {
  const digests = digestsByVersion[version]?.[platform];
  if (digests !== undefined) return digests;
  throw new ChartpilotError('ENVOY_INSTALL_FAILED', `no known digest of Envoy ${version} for ${platform}`, {
    hint: 'Set ENVOY_BINARY to an Envoy binary.',
  });
}
