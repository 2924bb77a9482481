// Redirects that deliberately differ from the HDLProxy recordings, with reasons.

const LOT = 'the choice is drawn by lot: test/redirect/weighted.test.ts holds it to the weights';
const OTHER_SERVER =
  'there is one Handle server behind this proxy, and it says that the prefix is not its own';

export const redirectWaivers: Readonly<Record<string, string>> = {
  'loc: malformed XML falls back to URL?': 'it does: an answer is better than the 500 of HDLProxy',
  'redirect: prefix whose server is down': OTHER_SERVER,
  'redirect: prefix whose server is down, again': OTHER_SERVER,
  'page: /static/images/res_tool.gif': 'an image of the pages of HDLProxy',
};

/** Recordings to compare without their Location, which is random. */
export const drawnByLot: Readonly<Record<string, string>> = Object.fromEntries(
  [1, 2, 3, 4, 5, 6].map((count) => [`loc: weighted choice ${count}`, LOT]),
);
