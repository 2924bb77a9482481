// Mutations of a source file: each changes one operator, literal, branch or statement.
import ts from 'typescript';

const { SyntaxKind: Kind } = ts;

const BINARY = new Map([
  [Kind.LessThanToken, '<='],
  [Kind.LessThanEqualsToken, '<'],
  [Kind.GreaterThanToken, '>='],
  [Kind.GreaterThanEqualsToken, '>'],
  [Kind.EqualsEqualsEqualsToken, '!=='],
  [Kind.ExclamationEqualsEqualsToken, '==='],
  [Kind.AmpersandAmpersandToken, '||'],
  [Kind.BarBarToken, '&&'],
  [Kind.QuestionQuestionToken, '&&'],
  [Kind.PlusToken, '-'],
  [Kind.MinusToken, '+'],
  [Kind.AsteriskToken, '/'],
  [Kind.SlashToken, '*'],
]);

const METHODS = new Map([
  ['some', 'every'],
  ['every', 'some'],
  ['min', 'max'],
  ['max', 'min'],
  ['filter', 'slice'],
  ['startsWith', 'endsWith'],
]);

/** A string that is a name, and no message for a reader. */
const NAME = /^[\w./*-]{1,24}$/;

/** Statements that only have an effect. Without one in a loop, the loop might not end. */
const isEffect = (node) =>
  ts.isExpressionStatement(node) && !ts.findAncestor(node, (each) => ts.isWhileStatement(each));

const isCondition = (node) => ts.isIfStatement(node.parent) && node.parent.expression === node;
const isMethod = (node) => ts.isPropertyAccessExpression(node.parent) && node.parent.name === node;

/** For each kind of mutation: whether a node has it, and the text that replaces the node, undefined for none. */
const OPERATORS = [
  [
    ts.isBinaryExpression,
    ({ left, right, operatorToken }) =>
      BINARY.has(operatorToken.kind) &&
      `${left.getText()} ${BINARY.get(operatorToken.kind)} ${right.getText()}`,
  ],
  [
    (node) => ts.isPrefixUnaryExpression(node) && node.operator === Kind.ExclamationToken,
    ({ operand }) => operand.getText(),
  ],
  [
    ts.isConditionalExpression,
    ({ condition, whenTrue, whenFalse }) =>
      `${condition.getText()} ? ${whenFalse.getText()} : ${whenTrue.getText()}`,
  ],
  [isCondition, () => 'true'],
  [isCondition, () => 'false'],
  [isEffect, () => ';'],
  [(node) => node.kind === Kind.TrueKeyword, () => 'false'],
  [(node) => node.kind === Kind.FalseKeyword, () => 'true'],
  [ts.isNumericLiteral, ({ text }) => `${text} + 1`],
  [(node) => ts.isStringLiteral(node) && NAME.test(node.text), () => "'mutated'"],
  [(node) => ts.isIdentifier(node) && isMethod(node), ({ text }) => METHODS.get(text)],
];

const isSkipped = (node) =>
  ts.isTypeNode(node) ||
  ts.isImportDeclaration(node) ||
  ts.isExportDeclaration(node) ||
  ts.isInterfaceDeclaration(node) ||
  ts.isTypeAliasDeclaration(node);

/** Returns the mutations of a file in the order of the text. */
export function mutationsOf(path, text) {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const found = [];
  const note = (node, replacement) => {
    const [start, end] = [node.getStart(), node.getEnd()];
    const { line } = source.getLineAndCharacterOfPosition(start);
    found.push({ path, line: line + 1, start, end, was: node.getText(), replacement });
  };
  const visit = (node) => {
    if (isSkipped(node)) return;
    for (const [applies, replace] of OPERATORS) {
      const replacement = applies(node) && replace(node);
      if (replacement) note(node, replacement);
    }
    // The name of a property is no value.
    ts.forEachChild(node, (child) => {
      if (!(ts.isPropertyAssignment(node) && node.name === child)) visit(child);
    });
  };
  ts.forEachChild(source, visit);
  return found;
}

export const mutate = (text, { start, end, replacement }) =>
  `${text.slice(0, start)}${replacement}${text.slice(end)}`;
