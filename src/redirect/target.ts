// Where a record leads: to one of its locations, else to its URL value, else nowhere.
import { type HandleValue, selects } from '../handle/value.js';
import { ServiceError } from '../errors.js';
import { type Address, append, toAddress } from './address.js';
import type { Asked } from './query.js';
import { type Choice, chooseLocation, isConneg } from './select-location.js';
import type { Locations, ReadLocations } from './locations.js';
import { upperAscii } from '../handle/handle.js';
import { isOfType, textOf } from './values.js';

export interface TargetDeps {
  allowedHosts: readonly string[] | undefined;
  readLocations: ReadLocations;
  random: () => number;
}

export interface Question {
  handle: string;
  values: readonly HandleValue[];
  asked: Asked;
  accept: string | undefined;
}

/** What was chosen, and why: for the page, and for those who keep the answer. */
export interface Chosen {
  /** As it stands in the record, or with the text appended. */
  value: string;
  index: number;
  type: string;
  location?: Choice & { among: number };
}

export interface Target {
  /** Undefined when the record has neither a location nor a URL. */
  chosen: Chosen | undefined;
  /** Undefined when there is nothing to go to; not ok when it must not be gone to. */
  address: Address | undefined;
  status: number;
  /** Drawn by lot: the same question may lead elsewhere next time. */
  isDrawn: boolean;
  variesByAccept: boolean;
}

/**
 * The target of a record, of those values that were asked for.
 *
 * @throws ServiceError BAD_PARAMETER when `urlappend` leads to another host
 */
export function findTarget(question: Question, deps: TargetDeps): Target {
  const values = question.values.filter(selects(question.asked));
  const found = locationsIn(values, question, deps.readLocations);
  const chosen = choose(values, { found, question, random: deps.random });
  const { location } = chosen ?? {};
  return {
    chosen,
    address: chosen && toAddress(chosen.value, deps),
    status: statusOf(location),
    isDrawn: location?.isDrawn ?? false,
    variesByAccept: found?.read.locations.some(isConneg) ?? false,
  };
}

interface Found {
  value: HandleValue;
  read: Locations;
}

/** The first 10320/loc that can be read. One that cannot is passed over: HDLProxy answers 500. */
function locationsIn(
  values: readonly HandleValue[],
  { handle }: Question,
  readLocations: ReadLocations,
): Found | undefined {
  for (const value of values.filter((each) => isOfType(each, '10320/LOC'))) {
    const read = readLocations(textOf(value) ?? '', handle);
    if (read !== undefined) return { value, read };
  }
  return undefined;
}

function choose(
  values: readonly HandleValue[],
  given: { found: Found | undefined; question: Question; random: () => number },
): Chosen | undefined {
  const { found, question, random } = given;
  const url = urlIn(values);
  if (found === undefined) return url && chosenOf(url, textOf(url) ?? '', question.asked);
  // A plain URL beside locations has weight 0 (recording "action=showurls on loc").
  const legacy = url && { href: textOf(url) ?? '', weight: 0, attributes: new Map([['mode', 'legacy']]) };
  const locations = legacy ? [...found.read.locations, legacy] : found.read.locations;
  const { locationAttributes, country } = question.asked;
  const wishes = { locationAttributes, country, accept: question.accept, random };
  const choice = chooseLocation({ ...found.read, locations }, wishes);
  if (choice === undefined) return undefined;
  const value = url !== undefined && choice.location === legacy ? url : found.value;
  const location = { ...choice, among: found.read.locations.length };
  return { ...chosenOf(value, choice.location.href, question.asked), location };
}

/** The first value of type URL in the order of the record, else the first of a subtype. */
function urlIn(values: readonly HandleValue[]): HandleValue | undefined {
  const usable = values.filter((value) => (textOf(value) ?? '').trim() !== '');
  return (
    usable.find((value) => isOfType(value, 'URL', '0.TYPE/URL')) ??
    usable.find(({ type }) => upperAscii(type).startsWith('URL.'))
  );
}

function chosenOf({ index, type }: HandleValue, href: string, { urlAppend }: Asked): Chosen {
  const value = append(href, urlAppend);
  if (value !== undefined) return { value, index, type };
  throw new ServiceError('BAD_PARAMETER', { detail: 'urlappend leads to another host' });
}

/** A location may ask for another kind of redirect. */
function statusOf(location: Choice | undefined): number {
  const asked = Number(location?.location.attributes.get('http_sc'));
  return [301, 302, 303, 307, 308].includes(asked) ? asked : 302;
}
