//! Quantisation to one byte per number keeps the direction of a vector.

use super::*;

#[test]
fn a_kept_vector_points_where_the_given_one_did() {
    let given: Vec<f32> = (0..385)
        .map(|place| ((place * 37 % 101) as f32 - 50.0) / 101.0)
        .collect();
    let length = given.iter().map(|value| value * value).sum::<f32>().sqrt();
    let unit: Vec<f32> = given.iter().map(|value| value / length).collect();
    let kept = AgentVectors::new(std::slice::from_ref(&unit)).unwrap();
    let found = compute_similarity(kept.as_bytes(), &QuantizedQuery::new(&unit));
    assert!((found.card - 1.0).abs() < 1e-3, "{found:?}");
    assert_eq!((found.part, found.combined_cosine()), (None, found.card));
    let again = AgentVectors::from_bytes(kept.as_bytes().to_vec(), 385).unwrap();
    assert_eq!(again, kept);
}

#[test]
fn the_best_part_counts_beside_the_whole_card() {
    let axis = |place: usize| {
        (0..4)
            .map(|at| f32::from(at == place))
            .collect::<Vec<f32>>()
    };
    let kept = AgentVectors::new(&[axis(0), axis(1), axis(2), axis(2)]).unwrap();
    let is = |found: f32, wanted: f32| (found - wanted).abs() < 1e-6;
    let found = compute_similarity(kept.as_bytes(), &QuantizedQuery::new(&axis(2)));
    let (place, part) = found.part.unwrap();
    assert!(is(found.card, 0.0) && is(part, 1.0), "{found:?}");
    assert_eq!(place, 1, "the first of two that are alike");
    assert!(is(found.combined_cosine(), 0.5), "{found:?}");
    // A part that is further away than the whole card does not lower the similarity.
    let found = compute_similarity(kept.as_bytes(), &QuantizedQuery::new(&axis(0)));
    assert_eq!(found.part, Some((0, 0.0)));
    assert!(is(found.combined_cosine(), 1.0), "{found:?}");
}

#[test]
fn a_vector_of_zeros_is_near_to_nothing() {
    let kept = AgentVectors::new(&[vec![0.0; 8]]).unwrap();
    assert_eq!(
        compute_similarity(kept.as_bytes(), &QuantizedQuery::new(&[0.3; 8])).combined_cosine(),
        0.0
    );
}

/// The largest possible product does not overflow: the longest vectors at their largest steps.
#[test]
fn the_longest_vectors_have_a_product() {
    let value = 1.0 / (MAX_DIMENSIONS as f32).sqrt();
    let vector = vec![value; MAX_DIMENSIONS];
    let kept = AgentVectors::new(std::slice::from_ref(&vector)).unwrap();
    let found = compute_similarity(kept.as_bytes(), &QuantizedQuery::new(&vector));
    assert!((found.card - 1.0).abs() < 1e-3, "{found:?}");
}
