use bpe_core::TokenId;
use serde_json::{Value, json};

use super::{PostProcessor, read_padding, read_truncation};
use crate::pipeline::blanks::Blanks;
use crate::pipeline::model_input::ModelInput;
use crate::pipeline::node::Node;

/// Ids whose tens are the leading blanks and whose hundreds are the trailing ones.
fn blanks(id: TokenId) -> Blanks {
    Blanks {
        leading: (id / 10 % 10) as usize,
        trailing: (id / 100) as usize,
    }
}

fn processor(value: &Value) -> PostProcessor {
    PostProcessor::read(&Node::new("post_processor", value)).expect("a post-processor")
}

fn text(ids: &[TokenId], type_id: u32) -> ModelInput {
    let offsets = (0..ids.len()).map(|index| index..index + 1).collect();
    ModelInput::new(ids.to_vec(), offsets, type_id)
}

fn process(value: &Value, first: &[TokenId], second: Option<&[TokenId]>, add: bool) -> ModelInput {
    let second = second.map(|ids| (text(ids, 1), ""));
    processor(value).process((text(first, 0), ""), second, add)
}

/// `[CLS] A [SEP] B [SEP]`, as BERT's file words it.
fn template() -> Value {
    let text = |id: &str, type_id: u32| json!({"Sequence": {"id": id, "type_id": type_id}});
    let token = |id: &str, type_id: u32| json!({"SpecialToken": {"id": id, "type_id": type_id}});
    json!({
        "type": "TemplateProcessing",
        "single": [token("[CLS]", 0), text("A", 0), token("[SEP]", 0)],
        "pair": [
            token("[CLS]", 0), text("A", 0), token("[SEP]", 0), text("B", 1), token("[SEP]", 1)
        ],
        "special_tokens": {
            "[CLS]": {"id": "[CLS]", "ids": [101], "tokens": ["[CLS]"]},
            "[SEP]": {"id": "[SEP]", "ids": [102], "tokens": ["[SEP]"]},
        },
    })
}

#[test]
fn a_template_and_bert_set_the_same_tokens() {
    let bert = json!({"type": "BertProcessing", "sep": ["[SEP]", 102], "cls": ["[CLS]", 101]});
    for value in [template(), bert] {
        let input = process(&value, &[1, 2], None, true);
        assert_eq!(input.ids(), [101, 1, 2, 102]);
        assert_eq!(input.offsets(), [0..0, 0..1, 1..2, 0..0]);
        assert_eq!(input.special_tokens_mask(), [true, false, false, true]);
        let input = process(&value, &[1, 2], Some(&[3]), true);
        assert_eq!(input.ids(), [101, 1, 2, 102, 3, 102]);
        assert_eq!(input.type_ids(), [0, 0, 0, 0, 1, 1]);
        assert_eq!(process(&value, &[1], None, false).ids(), [1]);
        assert_eq!(processor(&value).added_tokens(false), 2);
        assert_eq!(processor(&value).added_tokens(true), 3);
    }
}

#[test]
fn roberta_has_two_separators_in_a_pair_and_one_type() {
    let value = json!({
        "type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0],
        "trim_offsets": true, "add_prefix_space": true,
    });
    let input = process(&value, &[7], Some(&[8, 9]), true);
    assert_eq!(input.ids(), [0, 7, 2, 2, 8, 9, 2]);
    assert_eq!(input.type_ids(), [0; 7]);
    assert_eq!(processor(&value).added_tokens(true), 4);
}

#[test]
fn without_a_post_processor_a_pair_is_one_text_behind_the_other() {
    let input = process(&Value::Null, &[1], Some(&[2, 3]), true);
    assert_eq!(input.ids(), [1, 2, 3]);
    assert_eq!(input.type_ids(), [0, 1, 1]);
    assert_eq!(input.offsets(), [0..1, 0..1, 1..2]);
}

#[test]
fn offsets_are_trimmed_by_the_blanks_of_the_token() {
    let trimmed = |prefix_space: bool, tokens: &[(TokenId, std::ops::Range<usize>)]| {
        let value = json!({
            "type": "ByteLevel", "add_prefix_space": prefix_space, "trim_offsets": true
        });
        let (ids, offsets): (Vec<_>, _) = tokens.iter().cloned().unzip();
        let all = ids.iter().map(|&id| blanks(id)).collect();
        let input = ModelInput::new(ids, offsets, 0).with_blanks(all);
        let text = "  a\u{3000}b  ";
        let input = processor(&value).process((input, text), None, true);
        input.offsets().to_vec()
    };
    // `_a` at 1..3, `　b` at 3..7, `b__` at 6..9.
    let tokens = [(0, 0..1), (10, 1..3), (10, 3..7), (200, 6..9)];
    assert_eq!(trimmed(false, &tokens), [0..1, 2..3, 6..7, 6..7]);
    // The first token keeps its one blank where one may have been set before the text.
    assert_eq!(trimmed(true, &[(10, 0..2), (10, 1..3)]), [0..2, 2..3]);
    assert_eq!(trimmed(true, &[(20, 0..3), (0, 3..3)]), [2..3, 3..3]);
    // Never beyond the other end.
    assert_eq!(trimmed(false, &[(20, 0..1), (900, 0..2)]), [1..1, 0..2]);
}

#[test]
fn truncation_leaves_parts_that_share_their_stride() {
    let value = json!({
        "direction": "Right", "max_length": 6, "strategy": "LongestFirst", "stride": 2
    });
    let truncation = read_truncation(&Node::new("truncation", &value)).expect("settings");
    let truncation = truncation.expect("there");
    let mut first = text(&[1, 2, 3, 4, 5, 6, 7], 0);
    truncation.cut(2, &mut first, None).expect("cut");
    assert_eq!(first.ids(), [1, 2, 3, 4]);
    let processor = processor(&template());
    let input = processor.process((first, ""), None, true);
    assert_eq!(input.ids(), [101, 1, 2, 3, 4, 102]);
    let overflowing: Vec<_> = input.overflowing().iter().map(ModelInput::ids).collect();
    assert_eq!(
        overflowing,
        [&[101, 3, 4, 5, 6, 102][..], &[101, 5, 6, 7, 102]]
    );
}

#[test]
fn padding_fills_up_to_a_multiple_of_the_longest() {
    let value = json!({
        "strategy": "BatchLongest", "direction": "Left", "pad_to_multiple_of": 4,
        "pad_id": 9, "pad_type_id": 3, "pad_token": "[PAD]",
    });
    let padding = read_padding(&Node::new("padding", &value)).expect("settings");
    let padding = padding.expect("there");
    let mut batch = [text(&[1], 0), text(&[1, 2, 3, 4, 5], 0)];
    padding.pad(&mut batch).expect("padded");
    assert_eq!(batch[0].ids(), [9, 9, 9, 9, 9, 9, 9, 1]);
    assert_eq!(batch[1].ids(), [9, 9, 9, 1, 2, 3, 4, 5]);
    assert_eq!(batch[1].type_ids(), [3, 3, 3, 0, 0, 0, 0, 0]);
    assert_eq!(batch[1].attention_mask()[2..4], [false, true]);
    assert_eq!(batch[1].special_tokens_mask()[2..4], [true, false]);
}

#[test]
fn settings_that_cannot_be_met_are_errors() {
    let truncation = |max_length: usize, stride: usize, strategy: &str| {
        let value = json!({"max_length": max_length, "stride": stride, "strategy": strategy});
        let settings = read_truncation(&Node::new("truncation", &value)).expect("settings");
        let cut = settings
            .expect("there")
            .cut(1, &mut text(&[1, 2, 3, 4], 0), None);
        cut.expect_err("refused").to_string()
    };
    assert!(truncation(0, 0, "LongestFirst").contains("leaves nothing"));
    assert!(truncation(3, 2, "LongestFirst").contains("never come to an end"));
    assert!(truncation(3, 0, "OnlySecond").contains("there is none"));
    let value = json!({
        "strategy": {"Fixed": u64::MAX}, "direction": "Right", "pad_to_multiple_of": null,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]",
    });
    let padding = read_padding(&Node::new("padding", &value)).expect("settings");
    let padded = padding.expect("there").pad(&mut [text(&[1], 0)]);
    assert!(
        padded
            .expect_err("refused")
            .to_string()
            .contains("over the limit")
    );
}

#[test]
fn what_is_wrong_with_a_step_is_said_with_its_path() {
    let error = |value: &Value| {
        let read = PostProcessor::read(&Node::new("post_processor", value));
        read.expect_err("malformed").to_string()
    };
    let mut missing = template();
    missing["special_tokens"] = json!({});
    assert_eq!(
        error(&missing),
        "post_processor.special_tokens.[CLS]: missing; an object with ids and tokens is expected"
    );
    let twice = json!({"type": "Sequence", "processors": [template(), template()]});
    assert_eq!(
        error(&twice),
        "post_processor.processors[1]: a step that adds tokens behind another is not supported"
    );
    let bert = json!({"type": "BertProcessing", "sep": ["[SEP]"], "cls": ["[CLS]", 101]});
    assert_eq!(
        error(&bert),
        "post_processor.cls: malformed; a text and an id is expected".replace("cls", "sep")
    );
}
